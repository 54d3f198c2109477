"""Which test files tell of which module: those that its mutants are tried on."""

from __future__ import annotations

from pathlib import Path

from tests.mutation.children import ROOT

_TESTS = ROOT / "tests/unit/domain"
BESIDE = {
    "agreement": ("test_refused_agreements",),
    "alignment": ("test_evaluation",),
    "charges": ("test_scope_caps",),
    "compensation": ("test_credit_documents", "test_scope_caps"),
    "compensation_terms": ("test_compensation", "test_credit_documents", "test_charges", "test_scope_caps"),
    "credit_lines": ("test_charges", "test_scope_caps"),
    "evaluation": (
        *("test_columns", "test_excluded_windows", "test_identity", "test_joined_logs", "test_outcome", "test_where"),
    ),
    "incident_rules": ("test_lost_time",),
    "largest_credit": ("test_refused_agreements",),
    "lifecycle": ("test_alignment",),
    "lost_time": ("test_scope_caps",),
    "credit_steps": ("test_explanation",),
    "objective": ("test_agreement", "test_alignment", "test_outages", "test_refused_agreements", "test_samples"),
    "outcome": ("test_where", "test_excluded_windows"),
    "samples": ("test_joined_logs",),
    "settlement": ("test_attestability",),
    "settlement_terms": ("test_claims",),
    "tier_steps": ("test_charges", "test_credit_documents", "test_explanation", "test_scope_caps"),
}
"""By module: the files beside that of its own name, which tells most."""


def telling(module: Path) -> list[Path]:
    """The files that tell of a module: that of its name and those beside it; of a method those of all methods."""
    names = {f"test_{module.stem}", *BESIDE.get(module.stem, ())}
    files = [file for file in _TESTS.rglob("test_*.py") if file.stem in names]
    if module.parent.name == "methods":
        files += (_TESTS / "methods").glob("test_*.py")
    return sorted(set(files))
