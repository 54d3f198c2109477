"""A receiver of sla-ledger's webhooks, to run and to copy from: ``python examples/webhook_receiver.py --port 9000``.

It needs ``pip install standardwebhooks`` and the endpoint's secret in the environment (``WEBHOOK_SECRET=whsec_...``).
It refuses what is not signed with the secret, what was signed more than five minutes ago, and answers a message that
it has taken before without acting on it again. Store the ids where you store what you do with the messages, in the
same transaction; here they are in memory.
"""

from __future__ import annotations

import argparse
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

MAX_BODY_BYTES = 64 * 1024


class Receiver:
    """Decides what becomes of a message: an HTTP status, and the message where it is to be acted on."""

    def __init__(self, secret: str) -> None:
        self._webhook = Webhook(secret)
        self._seen: set[str] = set()

    def take(self, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, object] | None]:
        try:
            # Compares in constant time, and holds the signed timestamp against the clock.
            message = self._webhook.verify(body, headers)
        except (WebhookVerificationError, ValueError):
            return 401, None
        name = headers["webhook-id"]
        if name in self._seen:
            return 200, None
        self._seen.add(name)
        return 204, message


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=9000)
    receiver = Receiver(os.environ["WEBHOOK_SECRET"])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            if length > MAX_BODY_BYTES:
                self.send_error(413)
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, message = receiver.take(headers, self.rfile.read(length))
            if message is not None:
                print(json.dumps(message), flush=True)
            self.send_response(status)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
