"""Sources, imports and settlements for the tests of imported SLOs, and each method worked out the long way."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from ledger.domain.credits.settlement import Settlement, settle
from ledger.domain.money import PARTS_PER_BILLION
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.objective import Objective
from ledger.domain.time.calendar import Period
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import DocumentInvalid
from ledger.ingest.slo_draft import Draft, make_drafts
from ledger.ingest.slo_import import Imported, Source, read_slos

ENDINGS = (".yaml", ".yml", ".json")
Counts = Sequence[tuple[int, int]]


def read(*texts: str, keep_references: bool = False) -> Imported:
    """What is imported of documents given as texts; their files are called a.yaml, b.yaml ..."""
    sources = [Source(f"{chr(97 + at)}.yaml", text.encode()) for at, text in enumerate(texts)]
    return read_slos(sources, keep_references=keep_references)


def drafts_of(*texts: str) -> list[Draft]:
    return make_drafts(read(*texts).slos)


def only_draft(*texts: str) -> Draft:
    (draft,) = drafts_of(*texts)
    return draft


def first_period(agreement: Agreement) -> Period:
    return next(agreement.periods.all())


def settled(agreement: Agreement, counts: Counts) -> Settlement:
    """The first period with these counts (good, bad) for every objective, window by window, repeated to its end."""
    period = first_period(agreement)
    windows = [
        Window(
            interval,
            WindowState.OBSERVED,
            tuple(Cell(*counts[at % len(counts)]) for _ in agreement.objectives),
        )
        for at, interval in enumerate(agreement.windows(period))
    ]
    return settle(agreement, period, windows)


def by_hand(objective: Objective, agreement: Agreement, counts: Counts) -> Fraction:
    """The share that an objective reaches in the first period, by the definition of its method."""
    size = len(agreement.windows(first_period(agreement)))
    cells = [counts[at % len(counts)] for at in range(size)]
    if objective.method == "total_ratio":
        return Fraction(sum(good for good, _ in cells), sum(good + bad for good, bad in cells))
    seconds = objective.slices.window_seconds if objective.slices else objective.down.interval_seconds  # type: ignore[union-attr]
    each = seconds // agreement.window_seconds
    slices = [cells[at : at + each] for at in range(0, size - each + 1, each)]
    shares = [Fraction(sum(good for good, _ in part), sum(good + bad for good, bad in part)) for part in slices]
    if objective.slices is None:
        return sum(shares, Fraction(0)) / len(shares)
    least = Fraction(objective.slices.target_ppb, PARTS_PER_BILLION)
    return Fraction(sum(share >= least for share in shares), len(shares))


def outcome(path: Path, *, keep_references: bool) -> dict[str, Any]:
    """What importing a file comes to: how many SLOs, or the code and field of the fault."""
    try:
        imported = read_slos([Source(path.name, path.read_bytes())], keep_references=keep_references)
        drafts = make_drafts(imported.slos)
    except DocumentInvalid as error:
        found = {"refused": error.code, "field": error.data["field"], "line": error.data["line"]}
        return found | ({"document": error.data["document"]} if error.data.get("document", 1) != 1 else {})
    return {"imported": len(imported.slos), "drafts": len(drafts)} if drafts else {"imported": 0}
