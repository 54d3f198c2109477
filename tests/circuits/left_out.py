"""Which constraints of our circuits somebody would miss: each is left out, and a prover tries to use that.

A constraint is left out by letting a witness break it and no other. A check is missed if there is a lie that breaks it
alone: without it, the lie would be proved. The definition of a signal is missed if the signal can have another value so
that everything else holds and what is published is not what an honest claim publishes.
Uses of a template in a loop are one family; so are a template's instances. What is inside of circomlib's templates
(LessThan, IsZero, Num2Bits, Poseidon) is not ours and left alone; what is given to them is not.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ledger.attest.commitments.inputs import CircuitInputs
from ledger.domain.attested import SCALAR_ORDER as R
from tests.circuits.solver import Solver

_INDEX: Final = re.compile(r"\[\d+\]")
_UNNAMED: Final = re.compile(r"_(\d+)_\d+")
_LIBRARY: Final = re.compile(
    r"(?:^|\.)(?:(?:LessThan|IsZero|IsEqual|Num2Bits|Poseidon)_\d+_\d+|permutation)(?:\[\])*\.(?!ins?$|in\[\]$|inputs\[\]$)"
)
_WITHIN_LIBRARY: Final = re.compile(r"(?:^|\.)(?:n2b|isz|(?:IsZero|IsEqual|LessThan)_\d+_\d+(?:\[\])*)$")
_CHECK: Final = re.compile(r"^(.*?(?:^|\.)(?:Zero|Boolean|Same|Excludes|Range|AtMost)_\d+_\d+(?:\[\])*)(\..*)?$")
_INSTANCES: Final = 6
"""How many uses of a line in a loop are tried: the first and the last ones."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a prover starts from. ``follow``: it commits to what it pretends. A ``lie`` has inputs nobody may prove."""

    name: str
    inputs: CircuitInputs
    lie: bool
    follow: bool


@dataclass(frozen=True, slots=True)
class Result:
    """Families of constraints, and lines of ``lib/checks.circom``, with the attempt that each would let pass if it were
    missing; and those that nobody would miss."""

    missed: dict[str, str]
    not_missed: frozenset[str]

    def and_with(self, other: Result) -> Result:
        """What is missed in either of two instances of a template."""
        missed = other.missed | self.missed
        return Result(missed, (self.not_missed | other.not_missed) - set(missed))


@dataclass(frozen=True, slots=True)
class _Solved:
    attempt: Attempt
    witness: list[int]
    broken: frozenset[int]
    leading: frozenset[int]
    """Wires that a broken constraint is computed from."""


def survey(solver: Solver, attempts: Sequence[Attempt], public: Sequence[str], known: Container[str] = ()) -> Result:
    """Try every constraint of ours but those of families in ``known``; ``public`` are the public signals' names."""
    solved = []
    for attempt in attempts:
        witness = solver.solve(attempt.inputs)
        broken = frozenset(solver.broken(witness))
        solved.append(_Solved(attempt, witness, broken, frozenset(solver.leading_to(broken))))
        if attempt.lie != bool(solved[-1].broken):
            raise ValueError(f"{attempt.name} breaks {len(solved[-1].broken)} constraints")
    outputs = [solver.wires[name] for name in public]
    honest = {tuple(each.witness[wire] for wire in outputs) for each in solved if not each.attempt.lie}
    checks, definitions = families(solver)
    missed: dict[str, str] = {}
    for each in solved:
        for named in (checks.get, lambda at: _library_line(solver, at)):
            found = {named(at) for at in each.broken}
            if len(found) == 1:
                missed.setdefault(str(found.pop()), each.attempt.name)
    for family, wires in definitions.items():
        for each in solved if family not in known else ():
            if passed := _passes(solver, each, wires, outputs, honest):
                missed[family] = f"{each.attempt.name}, {passed}"
                break
    every = {*definitions, *checks.values(), *(_library_line(solver, at) for at in checks)} - {""}
    missed = {family: how for family, how in missed.items() if family in every}
    return Result(missed, frozenset(every - set(missed)))


def _passes(
    solver: Solver, solved: _Solved, wires: Sequence[int], outputs: Sequence[int], honest: Container[tuple[int, ...]]
) -> str | None:
    """The first wire and value with which nothing is broken but the definition of the wire."""
    witness, follow = solved.witness, solved.attempt.follow
    if solved.attempt.lie:
        wires = [wire for wire in wires if wire in solved.leading]
    elif len(wires) > _INSTANCES:
        wires = [*wires[: _INSTANCES - 2], *wires[-2:]]
    for wire in wires:
        definition = solver.definition[wire]
        for value in _values(solver, wire, witness):
            changed = solver.lie(witness, wire, value, follow=follow)
            if any(at != definition and not solver.holds(at, witness, changed) for at in solved.broken):
                continue
            if solver.broken(witness, changed) - {definition}:
                continue
            if tuple(changed.get(each, witness[each]) for each in outputs) not in honest:
                return f"{solver.names[wire]} = {value if value < R // 2 else value - R}"
    return None


def _values(solver: Solver, wire: int, witness: list[int]) -> Iterator[int]:
    """What a wire is tried with: a bit turned over, one more or less, a neighbour's value, nothing, a half, much."""
    now = witness[wire]
    near = [witness[each] for each in solver.neighbours(wire)]
    tried = [(1 - now) % R, now + 1, now - 1, 0, 1, *near, 5000, now + 10**4, now + (1 << 40), 1 << 172]
    for value in dict.fromkeys(tried):
        if value % R != now:
            yield value % R


def families(solver: Solver) -> tuple[dict[int, str], dict[str, list[int]]]:
    """The family of each constraint that is part of a check, and the wires of each family of definitions."""
    checks: dict[int, str] = {}
    defining = {at: wire for wire, at in solver.definition.items()}
    definitions: dict[str, list[int]] = {}
    for at, triple in enumerate(solver.constraints.triples):
        names = sorted(_INDEX.sub("[]", solver.names[wire]) for side in triple for wire, _ in side if wire)
        if at not in defining:
            (owner,) = {_owner(name) for name in names}
            if not _WITHIN_LIBRARY.search(owner):
                checks[at] = shown(owner)
            continue
        name = _INDEX.sub("[]", solver.names[defining[at]])
        if _LIBRARY.search(name):
            continue
        inside = _CHECK.match(name)
        if inside is not None and inside[2] and inside[2].count(".") > 1:
            # What a check hands on to its decompositions; its own lines are looked at by themselves.
            continue
        others = sorted({each for each in names if each != name} - {name})
        definitions.setdefault(shown(f"{name} <== {' '.join(others) or 'a constant'}"), []).append(defining[at])
    return checks, definitions


def _owner(name: str) -> str:
    """The check that a wire is part of; for a range that is no check of ours, the component of circomlib."""
    found = _CHECK.match(name)
    return found[1] if found else name.rsplit(".", 1)[0]


def shown(name: str) -> str:
    """Unnamed components with the line they stand on and without their serial number."""
    return _UNNAMED.sub(r"@\1", name)


def _library_line(solver: Solver, at: int) -> str:
    """The line of lib/checks.circom that a broken constraint comes from."""
    names = {_INDEX.sub("", solver.names[wire]) for side in solver.constraints.triples[at] for wire, _ in side if wire}
    found = set()
    for name in names:
        parts = name.split(".")
        for i, part in enumerate(parts):
            if re.match(r"(?:Zero|Boolean|Same|Excludes|Range|AtMost)_\d+_\d+$", part):
                inner = parts[i + 1] if i + 2 < len(parts) else "==="
                found.add(f"{part.split('_')[0]}: {shown(inner)}")
    return found.pop() if len(found) == 1 else ""
