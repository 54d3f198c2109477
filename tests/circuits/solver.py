"""A prover who may leave out a constraint: witnesses computed from the compiled constraints, one wire at a time.

circom compiles ``x <== f`` to a constraint and to a line of its witness program. Here the constraint itself gives x, so
that any wire can be given another value and all that follows from it is worked out, as a prover would for whom that
one constraint is missing. What is no such definition is a check. The hints of circomlib (bits, inverses) and the
division that is an input of our circuits are computed as in an honest prover. Unoptimised constraints only (O0).
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ledger.attest.commitments.inputs import CircuitInputs
from ledger.domain.attested import SCALAR_ORDER as R
from tests.circuits.compiled import Compiled, Terms

_BIT: Final = re.compile(r"^(.*)\.out\[(\d+)\]$")
_OF_A_CHECK: Final = re.compile(r"(?:^|\.)(?:Same|Zero)_\d+_\d+(?:\[\d+\])*\.\w+$")

Step = tuple[tuple[int, ...], Callable[[Sequence[int]], Sequence[int]], tuple[int, ...]]
"""Wires that are read, what is done with their values, wires that are written."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Inputs that a prover computes from wires of the circuit: hashes it publishes, a division it makes."""

    copies: Mapping[str, str]
    divided: str
    divisor: int


class Solver:
    """Witnesses of one compiled circuit. ``follow`` are the inputs that follow from others where asked for."""

    def __init__(self, circuit: Compiled, follow: Follow) -> None:
        self.constraints = circuit.constraints()
        self.names = {wire: names[0] for wire, names in circuit.names().items()}
        self.wires = {name: wire for wire, name in self.names.items()}
        self.definition: dict[int, int] = {}
        """The constraint that defines a wire."""
        self._hinted: dict[int, tuple[int, ...]] = {}
        self._touching = self.constraints.of_wires()
        self._follow = follow
        self._steps: list[Step] = []
        self._homes: dict[str, list[int]] = defaultdict(list)
        for wire, name in self.names.items():
            self._homes[name.rsplit(".", 1)[0]].append(wire)

    def solve(self, inputs: CircuitInputs) -> list[int]:
        """The witness that follows from all inputs. Wires that no step reaches are an error."""
        given = {self.wires[name]: value % R for name, value in flat(inputs)}
        if not self._steps:
            self._order(set(given))
        witness = [0] * self.constraints.wires
        witness[0] = 1
        for wire, value in given.items():
            witness[wire] = value
        for reads, compute, writes in self._steps:
            for wire, value in zip(writes, compute([witness[each] for each in reads]), strict=True):
                witness[wire] = value
        return witness

    def lie(self, witness: Sequence[int], wire: int, value: int, *, follow: bool) -> dict[int, int]:
        """What changes where a wire takes another value; with ``follow`` the inputs that follow from others, too."""
        changed = {wire: value % R}
        steps = self._followed if follow else self._plain
        by_read, listed = steps
        queue = list(by_read[wire])
        heapq.heapify(queue)
        done = -1
        while queue:
            at = heapq.heappop(queue)
            if at == done:
                continue
            done = at
            reads, compute, writes = listed[at]
            for one, found in zip(writes, compute([changed.get(each, witness[each]) for each in reads]), strict=True):
                if one != wire and found != changed.get(one, witness[one]):
                    changed[one] = found
                    for each in by_read[one]:
                        heapq.heappush(queue, each)
        return changed

    def broken(self, witness: Sequence[int], changed: Mapping[int, int] | None = None) -> set[int]:
        """Constraints that do not hold: of all, or of those that a change touches."""
        if changed is None:
            return {at for at in range(len(self.constraints.triples)) if not self.holds(at, witness, {})}
        touched = {at for wire in changed for at in self._touching[wire]}
        return {at for at in touched if not self.holds(at, witness, changed)}

    def holds(self, at: int, witness: Sequence[int], changed: Mapping[int, int]) -> bool:
        """Whether a constraint holds after a change."""
        a, b, c = (
            sum(factor * changed.get(wire, witness[wire]) for wire, factor in side)
            for side in self.constraints.triples[at]
        )
        return (a * b - c) % R == 0

    def neighbours(self, wire: int) -> list[int]:
        """Other wires of the component that a wire belongs to, such as the other side of an equality."""
        home = self.names[wire].rsplit(".", 1)[0]
        return [each for each in self._homes[home] if each != wire][:4] if "." in self.names[wire] else []

    def leading_to(self, constraints: Iterable[int], hops: int = 8) -> set[int]:
        """Wires of these constraints, and those that they are computed from, ``hops`` definitions back."""
        news = {wire for at in constraints for wire in _wires(self.constraints.triples[at])} - {0}
        found = set(news)
        for _ in range(hops):
            read = {each for wire in news for each in self._read_for(wire)}
            news = read - found
            found |= news
        return found

    def _read_for(self, wire: int) -> set[int]:
        if wire in self.definition:
            return _wires(self.constraints.triples[self.definition[wire]]) - {0}
        return set(self._hinted.get(wire, ()))

    # --- in which order ----------------------------------------------------------------------------

    def _order(self, given: set[int]) -> None:
        known = {0, *given}
        missing = [{wire for side in triple for wire, _ in side} - known for triple in self.constraints.triples]
        hints = dict(self._hints())
        ready = [at for at, wires in enumerate(missing) if len(wires) == 1]
        news = list(known)
        while ready or news:
            if news:
                wire = news.pop()
                for at in self._touching[wire]:
                    missing[at].discard(wire)
                    if len(missing[at]) == 1:
                        ready.append(at)
                if wire in hints:
                    compute, writes = hints.pop(wire)
                    self._steps.append(((wire,), compute, writes))
                    self._hinted |= dict.fromkeys(writes, (wire,))
                    news += [each for each in writes if each not in known]
                    known.update(writes)
                continue
            at = ready.pop()
            if len(missing[at]) != 1:
                continue
            (wire,) = missing[at]
            step = self._definition(at, wire)
            if step is not None and wire not in known:
                self._steps.append(step)
                self.definition[wire] = at
                known.add(wire)
                news.append(wire)
        left = set(range(self.constraints.wires)) - known
        if left:
            raise ValueError(f"nothing defines {sorted(self.names[wire] for wire in left)[:5]}")
        self._plain = _by_read(self._steps), self._steps
        followed = self._in_order([*self._steps, *self._following()])
        self._followed = _by_read(followed), followed

    def _definition(self, at: int, wire: int) -> Step | None:
        """The step that a constraint is for a wire that stands in its linear side alone; None for a check."""
        a, b, c = self.constraints.triples[at]
        if any(wire == each for side in (a, b) for each, _ in side):
            return None
        wires = _wires((a, b, c))
        # A constant given to a check defines its input; two of its inputs, or one alone, are the check.
        if (0 not in wires or len(wires) > 2) and all(_OF_A_CHECK.search(self.names[each]) for each in wires - {0}):
            return None
        factor = sum(f for each, f in c if each == wire)
        inverse = pow(factor, -1, R)
        rest = tuple((each, f) for each, f in c if each != wire)
        reads = tuple(sorted(_wires((a, b, rest))))
        place = {each: i for i, each in enumerate(reads)}
        sides = [[(place[each], f) for each, f in side] for side in (a, b, rest)]

        def compute(values: Sequence[int]) -> Sequence[int]:
            left, right, linear = (sum(f * values[i] for i, f in side) for side in sides)
            return (((left * right - linear) * inverse) % R,)

        return reads, compute, (wire,)

    def _hints(self) -> Iterator[tuple[int, tuple[Callable[[Sequence[int]], Sequence[int]], tuple[int, ...]]]]:
        """Bits and inverses, by the wire that they are of."""
        bits: dict[str, dict[int, int]] = defaultdict(dict)
        for wire, name in self.names.items():
            if found := _BIT.match(name):
                bits[found[1]][int(found[2])] = wire
            if name.endswith(".inv"):
                yield self.wires[f"{name[:-4]}.in"], (_inverse, (wire,))
        for name, of in bits.items():
            kind = name.rsplit(".", 1)[-1]
            if kind == "n2b" or kind.startswith("Num2Bits_"):
                outs = tuple(of[i] for i in range(len(of)))
                yield self.wires[f"{name}.in"], (partial(_bits, len(outs)), outs)

    def _following(self) -> Iterator[Step]:
        for target, source in self._follow.copies.items():
            yield (self.wires[source],), lambda values: values, (self.wires[target],)
        divisor = self._follow.divisor
        outs = self.wires["quotient"], self.wires["remainder"]
        yield (self.wires[self._follow.divided],), lambda values: divmod(values[0], divisor), outs

    def _in_order(self, steps: list[Step]) -> list[Step]:
        """Steps sorted so that what is read was written before."""
        writers = {wire: at for at, (_, _, writes) in enumerate(steps) for wire in writes}
        waits = [len({writers[wire] for wire in reads if wire in writers}) for reads, _, _ in steps]
        needed = defaultdict(set)
        for at, (reads, _, _) in enumerate(steps):
            for wire in reads:
                if wire in writers:
                    needed[writers[wire]].add(at)
        free, ordered = [at for at, count in enumerate(waits) if not count], []
        while free:
            at = free.pop()
            ordered.append(steps[at])
            for each in needed[at]:
                waits[each] -= 1
                if not waits[each]:
                    free.append(each)
        if len(ordered) != len(steps):
            raise ValueError("what follows from a wire is read before it")
        return ordered


def flat(inputs: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Each number of the inputs with the name of its wire."""

    def under(name: str, value: Any) -> Iterator[tuple[str, int]]:
        if isinstance(value, int):
            yield name, value
        else:
            for at, each in enumerate(value):
                yield from under(f"{name}[{at}]", each)

    for name, value in inputs.items():
        yield from under(name, value)


def _inverse(values: Sequence[int]) -> Sequence[int]:
    return (pow(values[0], -1, R) if values[0] else 0,)


def _bits(count: int, values: Sequence[int]) -> Sequence[int]:
    return [values[0] >> i & 1 for i in range(count)]


def _wires(triple: tuple[Terms, Terms, Terms]) -> set[int]:
    return {wire for side in triple for wire, _ in side}


def _by_read(steps: list[Step]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for at, (reads, _, _) in enumerate(steps):
        for wire in reads:
            found[wire].append(at)
    return found
