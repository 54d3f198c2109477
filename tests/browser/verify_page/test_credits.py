"""Credits beside tiers: recorded charges, rules for lost time, caps of scopes. What totals say of them, and lies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ledger.app.settlement.charges import ChargeDesk
from ledger.attest.checks.verification import Exit
from tests.browser.verify_page.conftest import Checker, Given
from tests.browser.verify_page.test_verdicts import ours
from tests.support.examples import remember_pairings
from tests.support.forging import Forger
from tests.support.office import SECRETS, Evidence, Office, failed, row, trust
from tests.unit.attest.test_credit_checks import BY_TOTALS, LIES, LIES_BESIDE_TOTALS, LINES, RULES
from tests.vectors.kinds import DAY, LOST, TIERS, TWO_SCOPES, TWO_TIERS, at, day, evidence, paid

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        remember_pairings(patch)
        yield


EUROS = [
    {
        **LINES[0],
        "currency": "EUR",
        "rate": {"rate": "1.0837", "source": "ECB", "date": DAY},
    },
    {**LINES[0], "region": "eu", "life": {"from": f"{DAY}T03:00:00Z", "until": f"{DAY}T05:00:00.5+01:00"}},
]


def charged(lines: list[dict[str, Any]] = LINES, **changes: Any) -> Evidence:
    """A day whose base finance recorded."""
    compensation = dict(paid()["compensation"])
    del compensation["base"]
    office = Office(compensation={**compensation, "charges": {"of": "period"}, **changes}).at_the_end()
    office.hand_in(row("a", at(8)), failed("b", at(10)))
    desk, sla_id = office.desk, office.desk.attestor.sla_id(office.desk.register().agreement)
    ChargeDesk(desk.database, desk.attestor, desk.clock).record(sla_id, f"{DAY}/P1D", lines)
    return office.close().evidence()


def paying(*rules: dict[str, Any], **changes: Any) -> Evidence:
    terms = {"objectives": changes.pop("objectives")} if "objectives" in changes else {}
    return day(failed("a", at(10)), row("b", at(11)), **terms, **paid(rules=list(rules), **changes))


CREDITS: dict[str, Callable[[], Evidence]] = {
    "charges": charged,
    "charges under other rules": lambda: charged(rules=RULES, caps={"contract": "50 %"}),
    "charges in two currencies": lambda: charged(EUROS, tiers_combine="sum"),
    "charges under caps of scopes": lambda: charged(EUROS, caps={"scope": "10 %"}),
    "a shortfall": lambda: paying(TIERS, {**LOST, "of": "shortfall"}, rules_combine="sum"),
    "a multiplier": lambda: paying(RULES[1]),
    "caps of scopes over a shortfall": lambda: paying(
        {**TIERS, "tiers": {"ttft": TWO_TIERS["tiers"]["ttft"]}},
        {**LOST, "of": "shortfall"},
        objectives=TWO_SCOPES,
        rules_combine="sum",
        caps={"scope": "100.00", "service": "1 %"},
    ),
    "caps of scopes over rules": lambda: paying(
        TWO_TIERS,
        {**LOST, "objective": "ttft"},
        objectives=TWO_SCOPES,
        rules_combine="sum",
        caps={"scope": "100.00", "contract": "150.00"},
    ),
}


def test_honest_credits_have_the_lines_of_the_command(checker: Checker) -> None:
    given = [Given(made().bundle, trust()) for made in CREDITS.values()]
    for name, case, found in zip(CREDITS, given, checker.reports(given), strict=True):
        assert found == ours(case), name
        assert found.exit_code == Exit.HOLDS, name


def test_lies_in_the_steps_of_a_credit_fail_alike(checker: Checker) -> None:
    made = CREDITS["charges under other rules"]()
    given = []
    for lie in LIES.values():
        forged = Forger(json.loads(made.bundle), SECRETS)
        lie(forged.issued["trace"])
        given.append(Given(forged.log().sign(), trust()))
    for name, case, found in zip(LIES, given, checker.reports(given), strict=True):
        assert found.outcomes == ours(case).outcomes, name
        assert found.failed == {"verdict"}, name


def test_lies_about_a_credit_that_totals_give_fail_alike(checker: Checker) -> None:
    made = [*map(evidence, BY_TOTALS), CREDITS["charges under caps of scopes"]()]
    told = [(each, lie) for each in made for lie in LIES_BESIDE_TOTALS.values()]
    given = []
    for each, lie in told:
        forged = Forger(json.loads(each.bundle), SECRETS)
        lie(forged.issued)
        given.append(Given(forged.log().sign(), trust()))
    for case, found in zip(given, checker.reports(given), strict=True):
        assert found.outcomes == ours(case).outcomes
        assert found.failed == {"verdict"}
