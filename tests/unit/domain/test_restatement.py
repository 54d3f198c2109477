"""By how much one statement differs from another: the entries lead from the old credit to the new one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.restatement import differences

amounts = st.none() | st.integers(0, 10**9).map(lambda units: {"currency": "USD", "minor_units": str(units)})


@given(amounts, amounts)
def test_a_difference_leads_from_the_old_credit_to_the_new(
    old: dict[str, str] | None, new: dict[str, str] | None
) -> None:
    found = differences({"objectives": [], "credit": old}, {"objectives": [], "credit": new}, "USD")["credit_delta"]
    before, after = (0 if found[name] is None else int(found[name]) for name in ("old", "new"))
    assert before + int(found["difference"]) == after
    assert (found["old"] is None, found["new"] is None) == (old is None, new is None)
