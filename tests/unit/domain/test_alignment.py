"""Where intervals begin, and that no period cuts one: stated in terms, and refused where the calendar says other."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.lifecycle import Timeline, check_amendment
from ledger.errors import DocumentInvalid
from tests.unit.domain.samples import document, put

BERLIN = {"timezone": "Europe/Berlin"}
MONTHS = {"period": "P1M"}
KOLKATA = {"timezone": "Asia/Kolkata", "window": "PT30M"}


def terms(interval: str, method: str = "interval_mean-v1", **members: Any) -> dict[str, Any]:
    """The example's agreement of 2023 with one objective by intervals; ``said`` are members of the objective."""
    said = members.pop("said", {})
    plain: Any = document()
    objective = {"id": "uptime", "method": method, "indicator": "availability", "target": "99.9", **said}
    if method == "downtime_minutes-v1":
        objective |= {"error_rate": "10", "boundary": "above"}
        members["window"] = "PT1M"
    else:
        objective["interval"] = interval
    for path, value in {**members, "objectives": [objective], "compensation.rules": []}.items():
        put(plain, path, value)
    return dict(plain)


@pytest.mark.parametrize(
    ("interval", "said", "members"),
    [
        ("PT1H", {"aligned": "day"}, {}),
        ("PT1H", {"aligned": "day", "partial": "none"}, BERLIN),
        ("PT2H", {"aligned": "utc", "partial": "none"}, {}),
        ("PT2H", {"aligned": "period", "partial": "drop"}, BERLIN),
        ("PT7H", {"aligned": "period"}, MONTHS),
        # A day of 23 hours is a period of its own: the next one begins anew.
        ("PT2H", {"aligned": "day"}, BERLIN),
        ("PT24H", {"aligned": "day", "partial": "none"}, MONTHS),
        ("PT1H", {"aligned": "utc"}, BERLIN),
        ("PT30M", {"aligned": "utc"}, KOLKATA),
        ("PT6H", {"aligned": "day"}, {"day_start": "08:00"}),
    ],
)
def test_what_the_calendar_keeps_is_taken(interval: str, said: dict[str, str], members: dict[str, str]) -> None:
    found = Agreement.from_document(terms(interval, said=said, **members))
    # It says what the grid is, and does not move it.
    assert found.objectives == Agreement.from_document(terms(interval, **members)).objectives


def test_minutes_can_say_it_too() -> None:
    said = {"aligned": "utc", "partial": "none"}
    assert Agreement.from_document(terms("", "downtime_minutes-v1", said=said)).objectives


@pytest.mark.parametrize(
    ("interval", "said", "members", "message"),
    [
        (
            "PT7H",
            {"aligned": "day"},
            MONTHS,
            "from the start of the period 2023-01-01/P1M do not begin with the day of 2023-01-02",
        ),
        ("PT2H", {"aligned": "day"}, {**MONTHS, **BERLIN}, "2023-03-01/P1M do not begin with the day of 2023-03-27"),
        ("PT2H", {"partial": "none"}, BERLIN, "objectives[0].partial: none: 3600 s of the period 2023-03-26/P1D"),
        ("PT7H", {"partial": "none"}, {}, "10800 s of the period 2023-01-01/P1D are left over"),
        ("PT7H", {"aligned": "utc"}, {}, "objectives[0].aligned: utc: intervals of 25200 s do not fill a day"),
        ("PT1H", {"aligned": "utc"}, KOLKATA, "starts at 2022-12-31T18:30:00Z, which is no multiple of 3600 s of UTC"),
        ("PT6H", {"aligned": "utc"}, {"day_start": "08:00"}, "starts at 2023-01-01T08:00:00Z"),
        ("PT1H", {"aligned": "noon"}, {}, "objectives[0].aligned: "),
        ("PT1H", {"partial": "count"}, {}, "objectives[0].partial: "),
    ],
)
def test_what_it_does_not_keep_is_refused_with_clause_and_period(
    interval: str, said: dict[str, str], members: dict[str, str], message: str
) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        Agreement.from_document(terms(interval, said=said, **members))
    assert message in refused.value.message


def test_a_method_without_intervals_has_nothing_to_align() -> None:
    plain: Any = document()
    assert Agreement.from_document(plain).objectives[0].down is None
    put(plain, "objectives.0.aligned", "day")
    with pytest.raises(DocumentInvalid, match=r"objectives\[0\].aligned"):
        Agreement.from_document(plain)


def test_a_change_of_terms_that_would_cut_an_interval_is_refused() -> None:
    effective = {"from": "2023-01-02", "until": "2024-01-01"}
    weeks = {"period": "P1W", "effective": effective, "said": {"partial": "none"}}
    before = Agreement.from_document(terms("PT48H", **{**weeks, "period": "P14D"}))
    after = {**weeks, "period": "P14D", "anchor": "2023-01-02", "partial_periods": "prorate", "said": {}}

    def amended(on: str) -> Agreement:
        return Agreement.from_document(terms("PT48H", **{**after, "effective": {**effective, "from": on}}))

    check_amendment(Timeline((before,)), amended("2023-03-01"), now_ns=0)
    with pytest.raises(DocumentInvalid, match="partial: none: 86400 s of the period 2023-02-27/P1D"):
        check_amendment(Timeline((before,)), amended("2023-02-28"), now_ns=0)
