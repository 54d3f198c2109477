"""The committed gas report is what the contracts cost, and keeps the limits we promise."""

from __future__ import annotations

import json

import pytest

from tests.contracts import gas


def test_the_report_keeps_the_promised_limits() -> None:
    headlines = json.loads(gas.PATH.read_text())["headlines"]
    assert headlines["gas_per_statement_1000"] <= 75
    assert headlines["gas_verify_and_record"] <= 315_000
    assert headlines["gas_two_proofs"] <= 560_000


@pytest.mark.slow
def test_the_report_is_current() -> None:
    """A difference is no fault by itself: run ``python -m tests.contracts.gas`` and look at what it changes."""
    assert gas.render(gas.measure()) == gas.PATH.read_text(encoding="utf-8")
