"""The real OpenSLO and Sloth documents: what becomes of each is written down, and what imports settles as by hand.

``openslo_outcomes.json`` is the table; ``python -m tests.unit.ingest.test_openslo_documents`` writes it anew for a
reader to compare.
"""

from __future__ import annotations

import json
import os
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ledger.domain.credits.verdict import ObjectiveState
from ledger.domain.money import PARTS_PER_BILLION
from ledger.domain.terms.agreement import Agreement
from ledger.ingest.agreement_yaml import parse_agreement
from ledger.ingest.slo_draft import make_drafts
from ledger.ingest.slo_import import Source, read_slos
from tests.unit.ingest.slo_cases import ENDINGS, by_hand, outcome, settled

pytestmark = pytest.mark.slow

TABLE = Path(__file__).with_name("openslo_outcomes.json")
EXPECTED: dict[str, dict[str, Any]] = json.loads(TABLE.read_text()) if TABLE.exists() else {}
IMPORTABLE = sorted(
    path for path, row in EXPECTED.items() if row.get("drafts") or row.get("keeping_references", {}).get("drafts")
)


def outcomes(root: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(root.rglob("*")):
        if path.suffix in ENDINGS:
            row = outcome(path, keep_references=False)
            kept = outcome(path, keep_references=True)
            found[path.relative_to(root).as_posix()] = row if kept == row else {**row, "keeping_references": kept}
    return found


def test_every_document_comes_to_what_the_table_says(sla_fixtures: Path) -> None:
    found = outcomes(sla_fixtures / "sla/openslo")
    assert len(found) == 103
    assert found == EXPECTED


def test_the_table_has_all_three_outcomes() -> None:
    refused = [row["refused"] for row in EXPECTED.values() if "refused" in row]
    assert {"document_invalid", "reference_unresolved", "no_counterpart"} == set(refused)
    assert len(IMPORTABLE) == 17
    assert sum(row.get("imported") == 0 for row in EXPECTED.values()) > 20


@pytest.mark.parametrize("path", IMPORTABLE)
def test_what_imports_settles_as_worked_out_by_hand(path: str, sla_fixtures: Path) -> None:
    file = sla_fixtures / "sla/openslo" / path
    imported = read_slos([Source(file.name, file.read_bytes())], keep_references=True)
    states: set[ObjectiveState] = set()
    for draft in make_drafts(imported.slos):
        agreement = Agreement.from_document(draft.document)
        assert parse_agreement(json.dumps(draft.document).encode(), "draft").document == draft.document
        for counts in ([(20_000, 1)], [(999, 1), (80, 40), (7, 0)]):
            settlement = settled(agreement, counts)
            for result in settlement.objectives:
                reached = by_hand(result.objective, agreement, counts)
                target = Fraction(result.objective.target_ppb, PARTS_PER_BILLION)
                assert (result.state is ObjectiveState.MET) == (reached >= target), (path, result.objective.id)
                assert abs(Fraction(result.good, result.valid) - reached) <= Fraction(1, PARTS_PER_BILLION)
                states.add(result.state)
            assert settlement.credit == 0
    assert states == {ObjectiveState.MET, ObjectiveState.BREACHED}


def test_the_examples_of_one_version_are_read_as_one_set(sla_fixtures: Path) -> None:
    """Conditions are found in another file; a target that no file has is still missing."""
    folder = sla_fixtures / "sla/openslo/go-sdk/pkg/openslo/v1/examples"
    sources = [Source(path.name, path.read_bytes()) for path in sorted(folder.glob("*.yaml"))]
    kept = read_slos(sources, keep_references=True)
    assert [slo.name for slo in kept.slos] == ["web-availability"]
    missing = [note.value for note in kept.notes if "of this name" in note.message]
    assert missing == ["on-call-mail-notification", "on-call-pd-notification"]


if __name__ == "__main__":
    table = outcomes(Path(os.environ["SLA_FIXTURES"]) / "sla/openslo")
    sys.stdout.write(json.dumps(table, indent=1) + "\n")
