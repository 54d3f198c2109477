"""Sharing out the tests among processes: what goes as a whole, and that what is named as longest is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import sharing

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("node_id", "unit"),
    [
        ("tests/unit/domain/test_money.py::TestCents::test_a[b::c]", "tests/unit/domain/test_money.py"),
        ("tests/browser/test_pages.py::test_a", "tests/browser/"),
        ("tests/circuits/test_lies.py::test_a[x]", "tests/circuits/test_lies.py"),
        ("tests/vectors/test_kinds.py::test_a", "tests/vectors/test_kinds.py"),
        ("tests/vectors/test_outsider.py::test_a[x]", "tests/vectors/test_outsider.py"),
        ("tests/unit/attest/test_verification_lies.py::test_a[x]", "tests/vectors/test_outsider.py"),
    ],
)
def test_a_file_or_a_folder_goes_as_a_whole(node_id: str, unit: str) -> None:
    assert sharing.unit_of(node_id) == unit


def test_what_takes_longest_comes_first() -> None:
    places = [sharing.rank(name) for name in ("tests/circuits/a.py", "tests/browser/b.py", "tests/unit/c.py::d")]
    assert places == sorted(set(places))


def test_what_waits_for_others_leaves_room_for_one_more() -> None:
    assert (sharing.processes(2, fast=True), sharing.processes(2, fast=False)) == (2, 3)


def test_every_place_that_is_named_is_there() -> None:
    assert [name for name in {*sharing.TOGETHER, *sharing.LONGEST} if not (ROOT / name).exists()] == []
    assert [start for start in sharing.SAME_PAIRINGS if not list(ROOT.glob(f"{start}*.py"))] == []
