"""What every course comes to where nobody disturbs it: what a run is held against."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.chaos.counts import Found, count_told, expected
from tests.chaos.courses import Contract, Course, contract_of
from tests.chaos.main import COURSES, SHORT_COURSES
from tests.chaos.undisturbed import Undisturbed, told
from tests.unit.app.conftest import signed_agreement

NOW = datetime(2023, 6, 15, 9, 30, 20, tzinfo=UTC)


class Parties:
    """Both parties of the tests, who sign one agreement after the other."""

    def __init__(self) -> None:
        self._nonce = 0

    def agreement(self, service: str, **changes: Any) -> dict[str, Any]:
        self._nonce += 1
        named = {**signed_agreement()["service"], "name": service}
        return signed_agreement(nonce=f"0x{self._nonce:064x}", service=named, **changes)

    def signed(self, document: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
        return signed_agreement(**{**document, **changes})


def contracts(*courses: Course) -> list[Contract]:
    parties = Parties()
    return [contract_of(course, f"chat-{number}", parties, NOW) for number, course in enumerate(courses)]


def counted(ledger: Undisturbed) -> dict[str, int]:
    return {each.what: each.count for each in expected(ledger.events())}


# Two objectives fail in ten hours that do not touch, or in five: a violation and a line for each.
@pytest.mark.parametrize(
    ("course", "different"),
    [
        (Course.PLAIN, {}),
        # Failures in the hour after the last bad one: the violation that was there ends later.
        (
            Course.LATE,
            {
                "batches of facts": 2,
                "changes of closed periods": 1,
                "statements": 2,
                "violations opened": 21,
                "violations closed": 21,
                "violations withdrawn": 1,
                "credit lines": 30,
                "their violations": 30,
            },
        ),
        (
            Course.EXCLUDED,
            {
                "exclusions": 1,
                "changes of closed periods": 1,
                "statements": 2,
                "violations withdrawn": 2,
                "credit lines": 30,
                "their violations": 30,
            },
        ),
        (
            Course.CLAIMED,
            {
                "batches of facts": 2,
                "changes of closed periods": 1,
                "statements": 2,
                "violations opened": 21,
                "violations closed": 21,
                "violations withdrawn": 1,
                "claims": 10,
                "credit lines": 11,
                "their violations": 11,
            },
        ),
        (
            Course.AMENDED,
            {
                "versions of terms": 2,
                "violations opened": 10,
                "violations closed": 10,
                "credit lines": 10,
                "their violations": 10,
            },
        ),
    ],
)
def test_what_a_course_comes_to(course: Course, different: dict[str, int]) -> None:
    plain = dict.fromkeys(("versions of terms", "batches of facts", "closings", "statements"), 1)
    plain |= dict.fromkeys(("exclusions", "changes of closed periods", "violations withdrawn", "claims"), 0)
    plain |= dict.fromkeys(("violations opened", "violations closed", "credit lines", "their violations"), 20)
    found = counted(Undisturbed(contracts(course)))
    versions = {name: found.pop(name) for name in ("proofs", "anchors in the log", "confirmed anchors")}
    assert found == plain | different
    assert set(versions.values()) == {found["statements"]}


def test_what_is_cut_in_two_is_settled_by_the_terms_before() -> None:
    (contract,) = contracts(Course.AMENDED)
    # The next full minute that leaves time to sign.
    assert contract.end == datetime(2023, 6, 15, 9, 32, tzinfo=UTC)
    ledger = Undisturbed([contract])
    (said,) = told(ledger.database, {ledger.sla_id(contract): contract}).values()
    statement = json.loads(said)["statement"]
    assert (statement["period"], statement["terms_version"], statement["windows"]) == ("2023-06-14/P1D", 1, 12)
    assert statement["trace"]["base"] == "400000"


@pytest.mark.parametrize("change", [timedelta(0), timedelta(seconds=39), timedelta(seconds=40), timedelta(days=90)])
def test_an_amendment_is_signed_45_to_105_seconds_before_it_takes_effect(change: timedelta) -> None:
    ahead = contract_of(Course.AMENDED, "chat", Parties(), NOW + change).end - (NOW + change)
    assert timedelta(seconds=45) <= ahead <= timedelta(seconds=105)


def test_every_course_is_tried_and_all_of_them_do_everything_that_is_counted() -> None:
    # The plain one is settled while Redis is away.
    assert {*COURSES, Course.PLAIN} == set(Course)
    assert set(SHORT_COURSES) <= set(COURSES)
    assert all(counted(Undisturbed(contracts(*Course))).values())


def test_the_same_contracts_are_told_alike_and_other_facts_are_not() -> None:
    made = contracts(Course.LATE, Course.PLAIN)
    ledgers = [Undisturbed(made) for _ in range(2)]
    (late, plain) = (ledgers[0].sla_id(each) for each in made)
    first, second = (told(each.database, {late: made[0], plain: made[1]}) for each in ledgers)
    assert count_told(second, first) == Found("periods told alike", 2, 2, 2)
    without = Undisturbed([replace(made[0], course=Course.PLAIN), made[1]])
    other = told(without.database, {late: made[0], plain: made[1]})
    assert count_told(other, first).lost == 1
    assert count_told({}, first).lost == 2
