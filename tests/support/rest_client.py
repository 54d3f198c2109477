"""A collector and its customer, who reach a deployment by nothing but its REST API."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import httpx

from ledger.wiring.clock import SystemRandomness
from ledger.wiring.keyring import Keyring
from ledger.wiring.parties import DemoParties
from tests.support.deployment import Deployment, example_terms, request_log

PATIENCE_S = 60.0


class RestClient:
    """Asks until it has an answer: an API that is down, or a database that cannot be written now, is asked again.

    ``writes`` counts what was answered. The keys are those of the deployment's data directory.
    """

    def __init__(self, made: Deployment, *, patience_s: float = PATIENCE_S) -> None:
        self._url = made.url
        self._patience_s = patience_s
        self._randomness = SystemRandomness()
        self._parties = DemoParties(Keyring(made.data / "keys", self._randomness))
        self.writes = 0

    def register(self, service: str, first: date, *, times: int = 1) -> str:
        """The example's agreement for a service, to be recorded on chain from the day ``first`` on; its sla_id."""
        terms = self._parties.with_keys(example_terms())
        terms = {**terms, "nonce": "0x" + self._randomness.bytes(32).hex()}
        document = self._parties.signed({**terms, "service": {**terms["service"], "name": service}})
        asked = {"document": document, "first_period": f"{first}/P1D"}
        digest = self._ask("/v1/agreements/registration-digest", asked)["digest"]
        signature = "0x" + self._parties.sign_registration(bytes.fromhex(digest[2:])).hex()
        return str(self.ask("/v1/agreements", {**asked, "registration_signature": signature}, times=times)["sla_id"])

    def observe(self, sla_id: str, service: str, day: date, *, times: int = 1) -> int:
        """Send the log of a day, which is declared complete; how many rows were accepted."""
        declared = {"sla_id": sla_id, "from": f"{day}T00:00:00Z", "to": f"{day + timedelta(days=1)}T00:00:00Z"}
        answer = self.ask("/v1/observations", request_log(service, day), times=times, **declared)
        return int(answer["rows"]["accepted"])

    def close(self, sla_id: str, day: date, *, times: int = 1) -> str:
        """Close a day's period; the id of its event."""
        return str(self.ask(f"/v1/agreements/{sla_id}/periods/{day}/close", times=times)["receipt"]["event_id"])

    def ask(self, path: str, body: Mapping[str, Any] | bytes = b"", *, times: int = 1, **query: str) -> Any:
        """A write that is asked ``times`` times over; AssertionError unless all answers are of the same event."""
        answers = [self._ask(path, body, query) for _ in range(times)]
        self.writes += len(answers)
        events = {(answer.get("receipt") or answer)["event_id"] for answer in answers}
        if len(events) != 1:
            raise AssertionError(f"{path} asked {times} times is {len(events)} events: {answers}")
        return answers[0]

    def _ask(self, path: str, body: Mapping[str, Any] | bytes, query: Mapping[str, str] | None = None) -> Any:
        sent: dict[str, Any] = {"json": body}
        if isinstance(body, bytes):
            sent = {"content": body, "headers": {"Content-Type": "application/x-ndjson"} if body else {}}
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                answer = httpx.post(self._url + path, params=query, timeout=10, **sent)
                if answer.is_success:
                    return answer.json()
                if answer.status_code < 500:
                    raise AssertionError(f"{path}: {answer.text}")
                failure = f"{answer.status_code} {answer.text}"
            except httpx.HTTPError as error:
                failure = repr(error)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} was not answered in {self._patience_s:g} s: {failure}")
            time.sleep(0.2)
