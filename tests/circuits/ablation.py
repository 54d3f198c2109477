"""Does each constraint of the circuits earn its place? Take it out, and a prover must be able to use that.

``python -m tests.circuits.ablation`` leaves out every constraint of ours, one at a time, in the witness of the
unoptimised circuits (``left_out``), prints what nobody would miss with the reason why it stays, and a score: a few
minutes of one core. ``--proofs`` takes each check out of the sources instead and proves the lies that are aimed at it:
about ten seconds a check. Both are run by hand after a change of the circuits; 1 if something is unexplained.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ledger.attest.commitments.incident_credit import evaluate_incidents, incident_inputs
from ledger.attest.commitments.inputs import CircuitInputs, circuit_inputs
from ledger.attest.commitments.model import PeriodClaim, evaluate
from ledger.attest.proving.circuits import circuit_named, circuit_sources
from ledger.domain.attested import SCALAR_ORDER as R
from ledger.domain.money import Rounding
from ledger.resources import resource_dir
from tests.circuits.claims import plain_claim, plain_terms, random_claim
from tests.circuits.compiled import compiled
from tests.circuits.incident_claims import E18, lying_signals, plain_incidents
from tests.circuits.incident_lies import INCIDENT_LIES, IncidentLie
from tests.circuits.left_out import Attempt, Result, survey
from tests.circuits.lies import LIES, Lie
from tests.circuits.lying_prover import signals_of
from tests.circuits.solver import Follow, Solver

AnyLie = Lie | IncidentLie
CACHE: Final = Path(os.environ.get("SLA_LEDGER_KEY_CACHE") or Path(__file__).resolve().parents[2] / "var" / "keys")
PERIOD: Final = ("compliance_25x4", {"telemetryRoot": "root", "termsHash": "terms", "baseCommit": "base"})
INCIDENTS: Final = ("incidents_64", {"incidentRoot": "root", "termsHash": "terms", "tierCredit": "shownTier"})
CREDIT = r"Credit_\d+_\d+\.amount"
PERIOD_ROUNDINGS = (
    (Rounding.HALF_UP, 25),
    (Rounding.HALF_EVEN, 15),
    (Rounding.HALF_EVEN, 25),
    (Rounding.HALF_EVEN, 26),
)
NOWHERE_READ = "the first of its kind, which nothing reads: it is there so that the signal has a value"
A_HINT = "the input is the prover's own number and read nowhere else: without this line it would be chosen here"
OF_PERIODS = {
    "Credit@159.quotient <== quotient": A_HINT,
    "Credit@159.remainder <== remainder": A_HINT,
    "block[].activeBefore <== a constant": "before the first window, which is active by a check of its own",
    "objective[].falls[] <== a constant": NOWHERE_READ,
}
OF_INCIDENTS = {
    "incidents.apart[] <== a constant": NOWHERE_READ,
    "incidents.active[] <== active[]": A_HINT,
    "incidents.Boolean@31[]": "what is neither 0 nor 1 has word 0, so no window, so it is 0: other checks say so",
    "incidents.Boolean@31[].in <== incidents.active[]": "as the check that it is given to",
}
"""What nobody would miss, and why it stays: a change of a circuit is a change of every key. After @ stands the line."""


def _division_of_another_remainder(inputs: CircuitInputs, divisor: int) -> CircuitInputs:
    """The same amount modulo r, of a quotient that is anything but small."""
    amount = inputs["quotient"] * divisor + inputs["remainder"]
    remainder = (inputs["remainder"] + 1) % divisor
    return {**inputs, "remainder": remainder, "quotient": (amount - remainder) * pow(divisor, -1, R) % R}


def period_attempts() -> list[Attempt]:
    claims: dict[str, PeriodClaim] = {"plain": plain_claim()}
    claims |= {f"random {seed}": random_claim(seed) for seed in range(12)}
    claims |= {f"{r}, {fee}": plain_claim(terms=plain_terms(rounding=r), fee=fee) for r, fee in PERIOD_ROUNDINGS}
    for name, changes in {
        "capped": {"cap": 1000},
        "below the minimum": {"minimum": 100_000},
        "hidden": {"credit_hidden": True},
        "exact": {"exact": True},
        "summed": {"sum_capped": True},
    }.items():
        claims[name] = plain_claim(terms=plain_terms(**changes))
    attempts = [Attempt(name, circuit_inputs(claim, evaluate(claim)), False, True) for name, claim in claims.items()]
    attempts += [Attempt(lie.name, lie.inputs(), True, lie.committed) for lie in LIES.values() if lie.blocks == 1]
    wrapped = _division_of_another_remainder(attempts[0].inputs, 10_000)
    return [*attempts, Attempt("quotient that wraps", wrapped, True, False)]


def two_block_attempts() -> list[Attempt]:
    claims = [random_claim(seed, blocks=2) for seed in range(2)]
    attempts = [Attempt("random", circuit_inputs(claim, evaluate(claim)), False, True) for claim in claims]
    return attempts + [Attempt(lie.name, lie.inputs(), True, lie.committed) for lie in LIES.values() if lie.blocks == 2]


def incident_attempts() -> list[Attempt]:
    plain = plain_incidents()
    claims = {
        "plain": plain,
        "tiers": replace(plain, tier_amount=3_000_000_000),
        "summed": replace(plain, sum_rules=True),
        "hidden": replace(plain, terms=replace(plain.terms, credit_hidden=True)),
        "capped": replace(plain, terms=replace(plain.terms, cap=1000)),
        "below the minimum": replace(plain, terms=replace(plain.terms, minimum=200_000)),
    }
    for rounding, tier in ((Rounding.HALF_UP, 25_000), (Rounding.HALF_EVEN, 15_000), (Rounding.HALF_EVEN, 25_000)):
        terms = replace(plain.terms, rounding=rounding)
        claims[f"{rounding}, {tier}"] = replace(plain, terms=terms, incidents=(), tier_amount=tier)
        claims[f"{rounding}, {tier} and some"] = replace(plain, terms=terms, incidents=(), tier_amount=tier + 1000)
    inputs = {name: incident_inputs(claim, evaluate_incidents(claim)) for name, claim in claims.items()}
    attempts = [Attempt(name, each, False, True) for name, each in inputs.items()]
    attempts += [Attempt(lie.name, lie.inputs(), True, lie.committed) for lie in INCIDENT_LIES.values()]
    wrapped = _division_of_another_remainder(inputs["plain"], E18)
    return [*attempts, Attempt("quotient that wraps", wrapped, True, False)]


def solver_of_periods(cache: Path, blocks: int | None = None) -> Solver:
    """PeriodCompliance as a prover solves it. Raises ``NodePackagesMissing``."""
    circuit = compiled(PERIOD[0], "O0", cache, blocks=blocks)
    # An unnamed component has its place in the source in its name.
    (amount,) = (name for names in circuit.names().values() for name in names if re.fullmatch(CREDIT, name))
    return Solver(circuit, Follow(PERIOD[1], amount, 10_000))


def solver_of_incidents(cache: Path) -> Solver:
    """IncidentCredit likewise."""
    return Solver(compiled(INCIDENTS[0], "O0", cache), Follow(INCIDENTS[1], "amount", E18))


def left_out() -> bool:
    """Leave out every constraint in turn; whether all that nobody would miss is explained."""
    folder = resource_dir("circuits")
    public = circuit_named(folder, PERIOD[0]).signals
    one = survey(solver_of_periods(CACHE), period_attempts(), public)
    two = survey(solver_of_periods(CACHE, blocks=2), two_block_attempts(), public, known=one.missed)
    fine = _report("PeriodCompliance", one.and_with(two), OF_PERIODS)
    found = survey(solver_of_incidents(CACHE), incident_attempts(), circuit_named(folder, INCIDENTS[0]).signals)
    return _report("IncidentCredit", found, OF_INCIDENTS) and fine


def _report(what: str, result: Result, expected: dict[str, str]) -> bool:
    total = len(result.missed) + len(result.not_missed)
    print(f"{what}: {len(result.missed)} of {total} would be missed", flush=True)
    for family in sorted(result.not_missed | set(expected)):
        reason = expected.get(family, "UNEXPLAINED") if family in result.not_missed else "MISSED AFTER ALL: " + family
        print(f"  not missed: {family}: {reason}")
    return result.not_missed == set(expected)


_CHECK = re.compile(r"^\s*((?:Zero|Boolean|Same|Excludes|Range|AtMost)\b.*;)$")


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One use of a check: its file, its line counted from 0, its text."""

    file: str
    line: int
    check: str


def check_lines(sources: dict[str, str]) -> Iterator[CheckLine]:
    """Every use of a check in circom sources."""
    for file, text in sorted(sources.items()):
        for number, line in enumerate(text.splitlines()):
            if found := _CHECK.match(line):
                yield CheckLine(file, number, found[1])


def passing_lies(sources: dict[str, str], main: str, lies: Sequence[AnyLie]) -> list[str]:
    """Names of the lies that are proved under ``sources``."""
    import groth16py

    with tempfile.TemporaryDirectory() as scratch:
        for name, text in sources.items():
            path = Path(scratch, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        proving_key, key = groth16py.setup_circom(str(Path(scratch, main)), [groth16py.circomlib_path(2)])
    verifier = groth16py.Verifier(key)
    passed = []
    for lie in lies:
        inputs = lie.inputs()
        signals = signals_of(inputs) if isinstance(lie, Lie) else lying_signals(inputs)
        if verifier.verify(groth16py.prove(proving_key, inputs), list(signals.as_tuple())):
            passed.append(lie.name)
    return passed


def proved() -> bool:
    """Take each check out of the sources; whether none of them could go unnoticed."""
    folder = resource_dir("circuits")
    unnoticed = 0
    for name, every in ((PERIOD[0], LIES), (INCIDENTS[0], INCIDENT_LIES)):
        circuit = circuit_named(folder, name)
        for line in check_lines(circuit_sources(circuit, folder)):
            lies: list[AnyLie] = [lie for lie in every.values() if lie.check == line.check]
            blocks = max(lie.blocks if isinstance(lie, Lie) else circuit.blocks for lie in lies)
            sources = circuit_sources(replace(circuit, blocks=blocks), folder)
            kept = sources[line.file].splitlines()
            kept[line.line] = ""
            passed = passing_lies(sources | {line.file: "\n".join(kept)}, circuit.main, lies)
            unnoticed += not passed
            verdict = f"lets {', '.join(passed)} pass" if passed else "IS NOT MISSED by any lie"
            print(f"without {line.file}:{line.line + 1} {line.check} {verdict}", flush=True)
    return unnoticed == 0


def main(argv: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--proofs", action="store_true", help="take checks out of the sources and prove lies instead")
    return 0 if (proved() if parser.parse_args(argv).proofs else left_out()) else 1


if __name__ == "__main__":
    sys.exit(main())
