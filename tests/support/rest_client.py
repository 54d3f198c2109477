"""A collector and its customer, who reach a deployment by nothing but its REST API."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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

    def signed(self, document: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
        """A document with changed members between the deployment's parties, who sign it."""
        unsigned = {name: value for name, value in {**document, **changes}.items() if name != "signatures"}
        return self._parties.signed(self._parties.with_keys(unsigned))

    def agreement(self, service: str, **changes: Any) -> dict[str, Any]:
        """The example's agreement for a service, between these parties for the first time."""
        terms = example_terms()
        nonce = "0x" + self._randomness.bytes(32).hex()
        return self.signed(terms, nonce=nonce, service={**terms["service"], "name": service}, **changes)

    def register(self, service: str, first: date, *, times: int = 1) -> str:
        """The example's agreement for a service, to be recorded on chain from the day ``first`` on; its sla_id."""
        return self.hand_in(self.agreement(service), "/v1/agreements", times=times, first_period=f"{first}/P1D")

    def hand_in(self, document: Mapping[str, Any], path: str, *, times: int = 1, **more: str) -> str:
        """Register a signed document, or an amendment, on chain as well; its sla_id."""
        asked = {"document": document, **more}
        digest = self._ask("/v1/agreements/registration-digest", asked)["digest"]
        signature = "0x" + self._parties.sign_registration(bytes.fromhex(digest[2:])).hex()
        return str(self.ask(path, {**asked, "registration_signature": signature}, times=times)["sla_id"])

    def observe(self, sla_id: str, service: str, day: date, *, times: int = 1) -> int:
        """Send the log of a day, which is declared complete; how many rows were accepted."""
        span = (f"{day}T00:00:00Z", f"{day + timedelta(days=1)}T00:00:00Z")
        return self.observe_rows(sla_id, request_log(service, day), span, times=times)

    def observe_rows(self, sla_id: str, rows: bytes, span: tuple[str, str], *, times: int = 1) -> int:
        """Send a log that is complete between two instants; how many rows were accepted."""
        answer = self.ask("/v1/observations", rows, times=times, sla_id=sla_id, **{"from": span[0], "to": span[1]})
        return int(answer["rows"]["accepted"])

    def close(self, sla_id: str, day: date, *, times: int = 1) -> str:
        """Close a day's period; the id of its event."""
        return str(self.ask(f"/v1/agreements/{sla_id}/periods/{day}/close", times=times)["receipt"]["event_id"])

    def ask(
        self, path: str, body: Mapping[str, Any] | bytes = b"", *, times: int = 1, key: str | None = None, **query: str
    ) -> Any:
        """A write that is asked ``times`` times over, under an Idempotency-Key where it needs one; AssertionError
        unless all answers are of the same event, or of the same lines."""
        answers = [self._ask(path, body, query, key) for _ in range(times)]
        self.writes += len(answers)
        if len({_made(answer) for answer in answers}) != 1:
            raise AssertionError(f"{path} asked {times} times was done differently: {answers}")
        return answers[0]

    def read(self, path: str, **query: str) -> Any:
        """What is there now."""
        return self._until_answered(path, lambda: httpx.get(self._url + path, params=query, timeout=10))

    def _ask(
        self,
        path: str,
        body: Mapping[str, Any] | bytes,
        query: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        sent: dict[str, Any] = {"json": body}
        if isinstance(body, bytes):
            headers |= {"Content-Type": "application/x-ndjson"} if body else {}
            sent = {"content": body}
        return self._until_answered(
            path, lambda: httpx.post(self._url + path, params=query, timeout=10, headers=headers, **sent)
        )

    def _until_answered(self, path: str, send: Callable[[], httpx.Response]) -> Any:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                answer = send()
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


def _made(answer: Mapping[str, Any]) -> str:
    """What an answer to a write says came of it."""
    if "items" in answer:
        return " ".join(each["line_id"] for each in answer["items"])
    return str((answer.get("receipt") or answer)["event_id"])
