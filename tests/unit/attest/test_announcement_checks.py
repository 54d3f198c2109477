"""Maintenance that left windows out was logged before it began, or the report says that it was not."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.attest.checks.announcement_checks import announcements, unlogged
from ledger.attest.checks.case import Case
from ledger.domain.record.naming import exclusions_stream
from ledger.errors import BundleCheckFailed, SlaLedgerError
from tests.support.forging import Forger
from tests.support.secrets import Secrets
from tests.unit.attest import test_exclusion_checks as exclusions

SECRETS = Secrets.of_vectors()
EVENT_ID = "01a22878-3ec8-7a03-907e-8e061aae31bc"


def logged(after_ns: int = -1, **payload: Any) -> Forger:
    """The bundle with the event that logged its exclusion, so long after it began."""
    found = exclusions.case()
    (listed,) = found.issued["exclusions"]
    members = {name: listed[name] for name in ("exclusion_id", "clause", "from_ns", "to_ns", "announced_at_ns")}
    sla_id = "0x" + found.sla_id.hex()
    event = {
        "seq": 0,
        "header": {
            **found.bundle["statement"]["header"],
            "id": EVENT_ID,
            "recorded_at_ns": str(int(listed["from_ns"]) + after_ns),
            "schema": 1,
            "stream": exclusions_stream(sla_id),
            "type": "exclusion_recorded",
            "version": 0,
        },
        "payload": {
            **members,
            "sla_id": sla_id,
            "approved_by": listed["approved_by"],
            "reason": "hosts are replaced",
            "ticket": "CHG-7",
            "by": "operator",
            **payload,
        },
        "salt": "00" * 32,
        "inclusion": [],
    }
    forged = Forger(found.bundle, SECRETS)
    forged.bundle["announcements"] = [event]
    return forged


def signed(forged: Forger) -> Case:
    forged.log([*forged.bundle["announcements"], forged.bundle["statement"]])
    return Case(forged.bundle)


def test_what_was_logged_before_it_began_is_shown_to_be() -> None:
    for after_ns in (-1, 0):
        case = signed(logged(after_ns))
        assert unlogged(case) == []
        assert "were logged before they began" in announcements(case)


def test_an_announcement_after_the_window_s_start_is_no_announcement() -> None:
    case = signed(logged(1))
    assert unlogged(case) == ["hosts"]
    assert "no entry shows that hosts was logged before it began" in announcements(case)


def test_one_that_is_not_given_is_the_issuer_s_word() -> None:
    assert unlogged(exclusions.case()) == ["hosts"]


@pytest.mark.parametrize(
    "payload",
    [{"announced_at_ns": None}, {"to_ns": "1"}, {"clause": "release"}, {"exclusion_id": "other"}],
)
def test_one_in_other_words_fails(payload: dict[str, Any]) -> None:
    with pytest.raises(BundleCheckFailed):
        announcements(signed(logged(**payload)))


def test_one_that_is_not_in_the_log_fails() -> None:
    case = signed(logged(1))
    case.bundle["announcements"][0]["header"]["recorded_at_ns"] = "7"
    assert unlogged(case) == []
    with pytest.raises(SlaLedgerError):
        announcements(case)
