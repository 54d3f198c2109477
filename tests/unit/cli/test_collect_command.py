"""``sla-ledger collect`` against a real endpoint: recorded, refused by name, and stopped by a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import main
from ledger.errors import TargetUnavailable
from ledger.ingest.scrape import fetch
from ledger.wiring.services import create_data
from tests.unit.app.conftest import signed_agreement

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
GPU = 'DCGM_FI_PROF_DRAM_ACTIVE{UUID="GPU-1"} 0.91\n'

Answer = Callable[[BaseHTTPRequestHandler], None]


def text(body: str, media_type: str = "text/plain; version=0.0.4", status: int = 200) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        data = body.encode()
        handler.send_response(status)
        handler.send_header("Content-Type", media_type)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


class Exporter:
    """An exporter on a free port; ``answer`` is what it says next."""

    def __init__(self) -> None:
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                exporter.asked += 1
                exporter.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.asked = 0
        self.answer = text(GPU)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/metrics"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    found = Exporter()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with one agreement, about the service example-chat."""
    from ledger.app.agreements.registering import register_agreement
    from ledger.attest.crypto.signing import verify
    from ledger.domain.terms.agreement import Agreement

    folder = tmp_path / "data"
    services = create_data(folder, key_cache=tmp_path / "keys", notify=lambda _: None)
    with services.database.begin() as tx:
        register_agreement(
            tx,
            Agreement.from_document(signed_agreement()),
            attestor=services.attestor,
            verify=verify,
            terms_version=1,
            registration=None,
            customer_signature=None,
            now_ns=1,
        )
    services.close()
    return folder


def arguments(data: Path, exporter: Exporter, *more: str, service: str = "example-chat") -> list[str]:
    named = ["--data", str(data), "--target", exporter.url, "--service", service, "--format", "dcgm"]
    return ["collect", *named, *more]


def test_a_scrape_is_recorded(data: Path, exporter: Exporter, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(data, exporter, "--once", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["samples"] == {"accepted": 1, "duplicate": 0, "conflict": 0, "quarantined": 0, "rejected": 0}
    # The same bytes at another time are another scrape.
    assert main(arguments(data, exporter, "--once", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["event_id"] != found["event_id"]
    exporter.answer = text(GPU + 'DCGM_FI_PROF_DRAM_ACTIVE{UUID="GPU-2"} 91\n')
    assert main(arguments(data, exporter, "--once")) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("1 accepted, 1 quarantined")
    assert "is it in another unit?" in printed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (text("x", status=500), "answered 500"),
        (text("", status=302), "answered 302"),
        (text('{"a": 1}'), "JSON or HTML"),
        (text(GPU, "application/json"), "is not read here"),
        (text("DCGM_FI_DEV_GPU_TEMP 3\n"), "the label UUID is missing"),
    ],
)
def test_what_cannot_be_used_is_refused(
    data: Path, exporter: Exporter, answer: Answer, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exporter.answer = answer
    assert main(arguments(data, exporter, "--once")) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_service_and_a_wrong_time_are_named(
    data: Path, exporter: Exporter, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(data, exporter, "--once", service="nobody")) == 2
    assert "'nobody' is no service of an agreement" in capsys.readouterr().err
    assert main(arguments(data, exporter, "--every", "0s")) == 2
    assert "--every '0s'" in capsys.readouterr().err


def test_an_endpoint_is_bounded(exporter: Exporter) -> None:
    exporter.answer = text("x" * 5000)
    with pytest.raises(TargetUnavailable, match="more than 1000 bytes"):
        fetch(exporter.url, max_bytes=1000)

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        for _ in range(50):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.05)

    exporter.answer = drip
    with pytest.raises(TargetUnavailable, match=r"within 0\.3 s"):
        fetch(exporter.url, timeout_s=0.3)

    def cut(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"x")

    exporter.answer = cut
    with pytest.raises(TargetUnavailable, match="broke its answer off"):
        fetch(exporter.url)
    for url in ("file:///etc/passwd", "ftp://a/b", "http://", "http://[::1", "http://127.0.0.1:1/"):
        with pytest.raises(TargetUnavailable):
            fetch(url, timeout_s=1)


@pytest.mark.slow
def test_it_goes_on_until_it_is_told_to_stop(data: Path, exporter: Exporter) -> None:
    good, broken = text(GPU), text("broken", status=500)

    def broken_at_first(handler: BaseHTTPRequestHandler) -> None:
        (broken if exporter.asked == 1 else good)(handler)

    exporter.answer = broken_at_first
    command = [sys.executable, "-m", "ledger.cli.main", *arguments(data, exporter, "--every", "1s", "--json")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while exporter.asked < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "answered 500" in err
    assert all(json.loads(line)["samples"]["accepted"] == 1 for line in out.splitlines())
    assert len(out.splitlines()) >= 2
