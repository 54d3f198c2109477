"""One bundle before two verifiers: ours, and ``outsider``, which was written from docs/attestation-format.md alone."""

from __future__ import annotations

from typing import NamedTuple

from ledger.attest.checks import verification
from ledger.attest.checks.verification import Outcome
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import BadInput
from tests.support import examples
from tests.vectors import outsider

STEPS = {
    "issuer signature": 2,
    "agreement": 3,
    "period": 4,
    "notice": 4,
    "log checkpoint": 5,
    "log inclusion": 5,
    "restatement": 5,
    "telemetry": 6,
    "collector signature": 6,
    "seal times": 6,
    "probe signature": 6,
    "context": 7,
    "terms": 7,
    "telemetry signal": 7,
    "base": 7,
    "summary": 8,
    "announcements": 8,
    "verdict": 9,
    "credit": 9,
    "incidents": 9,
    "incident credit": 9,
    "verification key": 10,
    "proof": 10,
    "incident key": 10,
    "incident proof": 10,
    "anchor": 11,
    "witness quorum": 12,
    "opening": 0,
}
"""The step of section 12 that each of our checks belongs to; 0 is the opening."""
BAD_INPUT = 2


class Verdict(NamedTuple):
    """How a verifier ends, with and without development keys accepted, and which steps failed or were not checked."""

    exits: tuple[int, int]
    failed: frozenset[int]
    not_checked: frozenset[int]


UNREADABLE = Verdict((BAD_INPUT, BAD_INPUT), frozenset(), frozenset())


def ours(data: bytes, trust: bytes | None, opening: bytes | None = None) -> Verdict:
    try:
        bundle = verification.read_bundle(data)
        pins = None if trust is None else verification.read_trust(trust)
        given = None if opening is None else verification.read_opening(opening)
    except BadInput:
        return UNREADABLE
    report = verification.verify_bundle(bundle, pins, given)
    found: dict[Outcome, set[int]] = {outcome: set() for outcome in Outcome}
    for line in report.lines:
        if line.check in STEPS or line.check.startswith(("pin: ", "root on chain ")):
            step = 13 if line.check.startswith("pin: ") else 11
            found[line.outcome].add(STEPS.get(line.check, step))
    exits = (int(report.exit_code(accept_dev=False)), int(report.exit_code(accept_dev=True)))
    # Whether counts were opened, and whether there is a proof, is no verdict.
    not_checked = frozenset(found[Outcome.NOT_CHECKED]) - {0, 10}
    return Verdict(exits, frozenset(found[Outcome.FAIL]), not_checked)


def theirs(data: bytes, trust: bytes | None, opening: bytes | None = None) -> Verdict:
    try:
        lines = outsider.verify(data, trust, opening)
    except outsider.BadInput:
        return UNREADABLE

    def steps(outcome: str) -> frozenset[int]:
        found = {name for name, each in lines.items() if each == outcome and name != "dev key"}
        return frozenset(0 if name == "opening" else int(name.partition(" ")[0]) for name in found)

    exits = tuple(outsider.exit_code(lines, accept_dev=accept) for accept in (False, True))
    return Verdict((exits[0], exits[1]), steps(outsider.FAIL), steps(outsider.NOT_CHECKED))


TRUST = canonical_bytes(examples.trust())
