"""The contracts in a deployment that is disturbed: over REST, and everything asked twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from ledger.domain.record.naming import statement_id
from tests.chaos.courses import Contract, Course, begin, contract_of, go_on
from tests.chaos.faults import Faults
from tests.support.deployment import Deployment
from tests.support.rest_client import RestClient

STATEMENT_WITHIN_S = 120.0
_TIMES = 2


class Settling:
    """Lets a contract of each course happen, and one more while Redis is away. ``contracts`` are known by sla_id."""

    def __init__(self, made: Deployment, say: Callable[[str], None]) -> None:
        self._client = RestClient(made)
        self._say = say
        self._sla_ids: dict[str, str] = {}
        self._contracts: dict[str, Contract] = {}
        self.without_redis = 0
        self.failure: Exception | None = None

    @property
    def contracts(self) -> dict[str, Contract]:
        return {sla_id: self._contracts[service] for service, sla_id in self._sla_ids.items()}

    def start(self, courses: Sequence[Course], faults: Faults) -> threading.Thread:
        """Let the courses happen in a thread, spread over the faults."""
        thread = threading.Thread(target=self._run, args=(courses, faults))
        thread.start()
        return thread

    def settle_without_redis(self) -> None:
        """One period whose writes are all answered while nobody carries messages."""
        before = self._client.writes
        begin(self._contract("chat-without-redis", Course.PLAIN), self)
        self.without_redis = self._client.writes - before

    def _run(self, courses: Sequence[Course], faults: Faults) -> None:
        try:
            acts = 2 * len(courses)
            begun = []
            for number, course in enumerate(courses):
                faults.keep_pace(number / acts)
                begun.append(self._contract(f"chat-{number}", course))
                begin(begun[-1], self)
            for number, contract in enumerate(_in_turn(begun), len(courses)):
                faults.keep_pace(number / acts)
                self._say(f"{contract.service}: {contract.course}")
                go_on(contract, self)
        except Exception as error:  # told by the main thread
            self.failure = error
        finally:
            faults.go_on_alone()

    def _contract(self, service: str, course: Course) -> Contract:
        made = contract_of(course, service, self._client, datetime.now(UTC))
        self._contracts[service] = made
        return made

    # --- what happens ---

    def register(self, contract: Contract) -> None:
        made = self._client.hand_in(
            contract.document, "/v1/agreements", times=_TIMES, first_period=contract.first_period
        )
        self._sla_ids[contract.service] = made

    def amend(self, contract: Contract) -> None:
        assert contract.amendment is not None
        self._client.hand_in(contract.amendment, f"{self._agreement(contract)}/amendments", times=_TIMES)

    def observe(self, contract: Contract, rows: bytes) -> None:
        span = (_text(contract.start), _text(contract.end))
        accepted = self._client.observe_rows(self._sla_ids[contract.service], rows, span, times=_TIMES)
        if accepted != (sent := rows.count(b"\n")):
            raise AssertionError(f"{accepted} of {sent} rows were accepted")

    def close(self, contract: Contract) -> None:
        self._client.ask(f"{self._agreement(contract)}/periods/{contract.first}/close", times=_TIMES)

    def wait_for_end(self, contract: Contract) -> None:
        time.sleep(max(0.0, (contract.end - datetime.now(UTC)).total_seconds()))
        self._say(f"{contract.service}: its first part is over")

    def wait_for_statement(self, contract: Contract, version: int) -> None:
        sla_id, wanted = self._sla_ids[contract.service], self._statement(contract, version)
        deadline = time.monotonic() + STATEMENT_WITHIN_S
        while not any(each["id"] == wanted for each in self._client.read("/v1/statements", sla_id=sla_id)["items"]):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{wanted} was not issued in {STATEMENT_WITHIN_S:g} s")
            time.sleep(0.3)

    def exclude(self, contract: Contract) -> None:
        start, end = map(_text, contract.excluded)
        asked = {"id": "e1", "clause": "dispute", "from": start, "to": end, "reason": "both agree"}
        self._client.ask(f"{self._agreement(contract)}/exclusions", {**asked, "approved_by": "board"}, times=_TIMES)

    def claim(self, contract: Contract, version: int, violation: str | None) -> None:
        name = self._statement(contract, version)
        asked = {} if violation is None else {"violation_id": f"{name.rpartition('.')[0]}.{violation}"}
        self._client.ask(f"/v1/statements/{name}/claims", asked, times=_TIMES, key=name)

    def _agreement(self, contract: Contract) -> str:
        return f"/v1/agreements/{self._sla_ids[contract.service]}"

    def _statement(self, contract: Contract, version: int) -> str:
        return statement_id(self._sla_ids[contract.service], contract.first, version)


def _in_turn(begun: Sequence[Contract]) -> list[Contract]:
    """What an amendment cuts is over late, and something goes wrong after that, too."""
    amended = [contract for contract in begun if contract.course is Course.AMENDED]
    others = [contract for contract in begun if contract.course is not Course.AMENDED]
    after = 2 * len(others) // 3
    return [*others[:after], *amended, *others[after:]]


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
