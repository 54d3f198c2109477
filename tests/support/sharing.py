"""How the tests are shared out among processes (``make test`` runs one on each core).

A process that is idle takes the next file as a whole, because what a file starts (servers, settled ledgers, provers)
serves all of its tests. Folders whose files share something dear go whole. What takes longest comes first, so that no
process is left with it at the end while the others have nothing to do.
"""

from __future__ import annotations

import pytest

TOGETHER = ("tests/browser/",)
"""A browser and a settled ledger serve all of its files. Provers of tests/circuits load the same keys in two processes
within seconds, and are no reason to leave the longest folder to one."""

SAME_PAIRINGS = ("tests/vectors/test_outsider", "tests/unit/attest/test_verification")
"""They put the same proofs to the same verifier, which remembers what it said (``examples.remember_pairings``): apart,
they take a sixth longer."""

LONGEST = (
    "tests/circuits/",
    "tests/browser/",
    "tests/mutation/",
    "tests/compose/",
    "tests/chain/",
    "tests/integration/",
    "tests/chaos/",
    "tests/contracts/",
    "tests/bench/",
    "tests/vectors/",
    "tests/unit/attest/",
    "tests/conformance/",
    "tests/api/test_up.py",
    "tests/api/",
    "tests/unit/wiring/",
    "tests/unit/test_provider_examples.py",
    "tests/unit/test_field_reports.py",
)
"""Those with the longest file first, as measured; what is not here takes a few seconds."""


def unit_of(node_id: str) -> str:
    """What a process takes as a whole: the test's folder, or file, or the first of the files it goes with."""
    if node_id.startswith(SAME_PAIRINGS):
        return f"{SAME_PAIRINGS[0]}.py"
    return next((folder for folder in TOGETHER if node_id.startswith(folder)), node_id.partition("::")[0])


def processes(cores: int, *, fast: bool) -> int:
    """How many run: one more than there are cores, as servers, nodes and browsers are waited for a fifth of the time.

    ``fast`` tests wait for nothing.
    """
    return cores if fast else cores + 1


def rank(node_id: str) -> int:
    """The place of a test's unit in the order in which they are handed out."""
    return next((place for place, start in enumerate(LONGEST) if node_id.startswith(start)), len(LONGEST))


def longest_first(items: list[pytest.Item]) -> None:
    """Put the tests into the order in which they are handed out; the same one in every process."""
    items.sort(key=lambda item: rank(item.nodeid))
