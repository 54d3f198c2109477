"""Bundles of every kind, honest and changed, before the page and the command: one verdict, line by line.

The forger holds everybody's keys and signs again as much as it likes, so that signatures mask nothing. Where the two
part, one of them is wrong.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from ledger.attest.checks import statement_checks as checks
from ledger.attest.checks import verification
from ledger.domain.record.canonical import canonical_bytes
from tests.browser.verify_page.conftest import Checker, Given
from tests.browser.verify_page.test_verdicts import ours
from tests.conformance.samples import SeededRandomness
from tests.support.examples import failed, remember_pairings
from tests.support.forging import Forger
from tests.support.office import SECRETS, trust
from tests.unit.attest.test_seal_checks import ORDERS, ordered
from tests.unit.attest.test_verification_binding import variants
from tests.vectors.kinds import KINDS, evidence
from tests.vectors.test_kinds import STEPS, at, changeable

pytestmark = pytest.mark.slow

CHANGED = 160


@pytest.fixture(autouse=True, scope="module")
def _together() -> Iterator[None]:
    """Pairings cost the command a second each: all proofs are looked at together, and taken as found afterwards."""
    made = [json.loads(evidence(name).bundle) for name in KINDS]
    proved = [document for document in made if document["proof"] is not None]
    reports = verification.verify_bundles(proved, None, SeededRandomness(11))
    assert all("proof" not in failed(report) for report in reports)
    held = {canonical_bytes([one["proof"][name] for name in PAIR]) for one in proved}
    with pytest.MonkeyPatch.context() as patch:
        remember_pairings(patch)
        alone = checks.check_proof

        def check(key: Any, signals: Any, data: bytes) -> None:
            claim = {"verification_key": key.document(), "signals": list(map(str, signals)), "proof": data.hex()}
            if canonical_bytes([claim[name] for name in PAIR]) not in held:
                alone(key, signals, data)

        patch.setattr(checks, "check_proof", check)
        yield


PAIR = ("verification_key", "signals", "proof")


def test_an_honest_bundle_of_every_kind_has_the_same_report_to_the_letter(checker: Checker) -> None:
    given = [Given(evidence(name).bundle, trust(), evidence(name).opening) for name in KINDS]
    for name, case, found in zip(KINDS, given, checker.reports(given), strict=True):
        assert found == ours(case), name


def test_blocks_in_every_order_of_the_log_have_the_same_report(checker: Checker) -> None:
    given = [Given(ordered(name), trust()) for name in ORDERS]
    for name, case, found in zip(ORDERS, given, checker.reports(given), strict=True):
        assert found == ours(case), name


def forged(number: int, names: list[str]) -> Given:
    """A bundle with one or two changes: a value near by, a member left out or doubled, or what another bundle has."""
    drawn = random.Random(number)  # the same changes every time
    made, other = (evidence(drawn.choice(names)) for _ in range(2))
    forger, others = Forger(json.loads(made.bundle), SECRETS), json.loads(other.bundle)
    for _ in range(drawn.randint(1, 2)):
        path = drawn.choice(changeable(forger.bundle))
        how = drawn.choice(["near", "near", "without", "twice", "swapped"])
        *above, last = path if how == "near" else path[: drawn.randint(1, len(path))]
        node = at(forger.bundle, tuple(above))
        if how == "near":
            node[last] = drawn.choice(list(variants(node[last])))
        elif how == "without":
            del node[last]
        elif how == "twice" and isinstance(node, list):
            node.insert(int(last), copy.deepcopy(node[int(last)]))
        elif how == "swapped":
            with contextlib.suppress(KeyError, IndexError, TypeError):
                node[last] = copy.deepcopy(at(others, (*above, last)))
    for step in drawn.sample(sorted(STEPS), drawn.randint(0, 3)):
        # What no tool of the forger can make sense of is left as it is.
        with contextlib.suppress(Exception):
            STEPS[step](forger)
    try:
        data = forger.sign()
    except Exception:
        data = canonical_bytes(forger.bundle)
    return Given(data, trust(), made.opening if drawn.random() < 0.5 else None)


def test_a_changed_bundle_has_the_same_outcomes(checker: Checker) -> None:
    names = [name for name in KINDS if "month" not in name]
    given = [forged(number, names) for number in range(CHANGED)]
    codes: dict[int, int] = {}
    for number, (case, found) in enumerate(zip(given, checker.reports(given), strict=True)):
        expected = ours(case)
        assert (found.exit_code, found.outcomes) == (expected.exit_code, expected.outcomes), number
        codes[found.exit_code] = codes.get(found.exit_code, 0) + 1
    assert codes[1] > CHANGED // 4
    assert codes[2] > CHANGED // 20
