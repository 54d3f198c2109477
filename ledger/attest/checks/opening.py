"""Checking an opening: counts and salts from which everything down to the last unit is worked out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.attest.checks.case import Case, require, require_same
from ledger.attest.checks.exclusion_checks import left_out
from ledger.attest.commitments import telemetry
from ledger.attest.commitments.attestation_context import window_counts
from ledger.domain.credits.settlement import settle
from ledger.domain.windows.window import Cell, Window, WindowState


def opening(case: Case, document: Mapping[str, Any]) -> str:
    """The opened counts give the sealed root, the totals, the states and the credit of the statement."""
    issued = case.issued
    require(document["statement_id"] == issued["statement_id"], "the opening is of another statement")
    windows = windows_opened(case, document)
    for index, (window, out) in enumerate(zip(windows, left_out(case), strict=True)):
        said = "no exclusion covers" if not out else "an exclusion covers"
        fits = (window.state is WindowState.EXCLUDED) == out
        require(fits, f"window {index} is {window.state} by the opening, and {said} it whole")
    salts = [int(salt) for salt in document["salts"]]
    blocks = telemetry.block_hashes(case.seal_key, window_counts(windows), salts)
    root = telemetry.telemetry_root(case.seal_key, len(windows), blocks)
    require(str(root) == issued["telemetry_root"], "the opened counts do not give the sealed telemetry root")
    settlement = settle(case.agreement, case.period, windows)
    require(settlement.objectives == case.results, "the opened counts give other totals or states")
    trace = {} if settlement.trace is None else settlement.trace.as_document()
    require_same(issued["trace"], trace, "the opened counts give another credit")
    coverage = settlement.coverage
    for name in ("windows", "observed", "excluded", "idle"):
        require(getattr(coverage, name) == issued[name], f"the opened counts give another number of {name} windows")
    return f"{len(windows)} opened windows give the sealed root, every total, state and the credit"


def windows_opened(case: Case, document: Mapping[str, Any]) -> tuple[Window, ...]:
    """The windows an opening gives; raises ``BundleCheckFailed`` where they are not the period's or the agreement's."""
    intervals = case.agreement.windows(case.period)
    ids = [objective.id for objective in case.agreement.objectives]
    require(len(document["windows"]) == len(intervals), f"the period has {len(intervals)} windows")
    windows = []
    for interval, opened in zip(intervals, document["windows"], strict=True):
        require(set(opened["cells"]) == set(ids), "a window's cells are not the objectives'")
        cells = tuple(Cell(opened["cells"][name]["good"], opened["cells"][name]["bad"]) for name in ids)
        windows.append(Window(interval, WindowState(opened["state"]), cells))
    return tuple(windows)
