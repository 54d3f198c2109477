"""What a verifier reports: lines, what no bundle establishes, and how the command ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

DEV_KEY = "dev key"
DEV_KEY_SAID = "the key was made on one machine: the issuer can forge this"
"""Said wherever a proof under a development key is shown."""
CHAIN = "chain"
"""How the names of checks begin that a node was asked for."""
RECOUNT = "recount"
"""What says whether logged batches give the opened counts, where somebody handed in his own copies."""
UNREADABLE = (ArithmeticError, LookupError, TypeError, ValueError)
"""What libraries raise in their own words about a hostile value. What cannot be evaluated does not hold."""


class Outcome(StrEnum):
    """What became of one line of the report."""

    PASS = "PASS"  # noqa: S105  # a verdict, not a password
    FAIL = "FAIL"
    NOT_CHECKED = "NOT CHECKED"
    ASSUMED = "ASSUMED"


class Stands(StrEnum):
    """What a node showed of a statement; the words are those of the verdict."""

    RECORDED = "recorded"
    ROOT = "batch root"


class Exit(IntEnum):
    """How ``sla-ledger verify`` ends; 2 is bad input, from the error tree."""

    HOLDS = 0
    FAILED = 1
    NOT_PINNED = 3


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report: which check, its outcome, and a sentence for people."""

    check: str
    outcome: Outcome
    detail: str


@dataclass(frozen=True, slots=True)
class OnChain:
    """A block of a chain in which the node that was asked showed a statement, or a batch root over it."""

    stands: Stands
    chain_id: str
    block_number: int


@dataclass(frozen=True, slots=True)
class Report:
    """All lines in order, what a bundle alone cannot establish, and where nodes that were asked showed it."""

    lines: tuple[Line, ...]
    not_established: tuple[str, ...]
    dev_key: bool
    on_chain: tuple[OnChain, ...] = ()

    def exit_code(self, *, accept_dev: bool) -> Exit:
        """0: all checks pass against pins; 1: one failed; 3: consistent, but unpinned, under a dev key, not settled on
        a chain that was asked, or not counted again from facts that were given."""
        if any(line.outcome is Outcome.FAIL for line in self.lines):
            return Exit.FAILED
        return Exit.NOT_PINNED if self.resting_on(accept_dev=accept_dev) else Exit.HOLDS

    def resting_on(self, *, accept_dev: bool) -> tuple[str, ...]:
        """The lines that keep a consistent bundle from holding. Who asks a node, or hands in what it logged, wants an
        answer: none is no more than an assumption."""
        found = (line.check for line in self.lines if line.outcome is Outcome.ASSUMED or _unanswered(line))
        return tuple(check for check in found if not (accept_dev and check == DEV_KEY))

    def verdict(self, *, accept_dev: bool) -> str:
        """The closing sentence for people: what failed, or by what it is consistent and on what that rests."""
        failed = [line.check for line in self.lines if line.outcome is Outcome.FAIL]
        if failed:
            return "does not hold: " + ", ".join(failed)
        resting_on = self.resting_on(accept_dev=accept_dev)
        rest = "but resting on " + ", ".join(resting_on) if resting_on else "against your pins"
        return f"consistent {self._checked()}, {rest}"

    def _checked(self) -> str:
        if not self.on_chain:
            return "offline"
        places = (f"{each.stands} in block {each.block_number} of chain {each.chain_id}" for each in self.on_chain)
        # One node is asked about a chain.
        asked = "node" if len({each.chain_id for each in self.on_chain}) == 1 else "nodes"
        return f"offline and on chain, as shown by the {asked} asked ({', '.join(places)})"


def _unanswered(line: Line) -> bool:
    return line.outcome is Outcome.NOT_CHECKED and (line.check == RECOUNT or line.check.startswith(CHAIN))
