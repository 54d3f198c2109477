"""A prover who lies: any input values, the signals the circuit would compute from them, no checks.

Everything is taken modulo r, comparisons included, exactly as circom computes a witness. It is
written from the circuit, not from the model, and knows nothing of what an honest prover may claim.
"""

from __future__ import annotations

from ledger.attest.commitments.inputs import CircuitInputs
from ledger.attest.commitments.statement import Signals
from ledger.attest.crypto.poseidon import poseidon, sponge, tag
from ledger.domain.attested import SCALAR_ORDER as R

BLOCK = 25


def less_than(bits: int, left: int, right: int) -> int:
    """circomlib's LessThan(bits) on values it may not be meant for."""
    return 1 - ((left + (1 << bits) - right) % R >> bits & 1)


def commit(inputs: CircuitInputs) -> None:
    """Make the hashes and the division of ``inputs`` consistent with its other values, in place."""
    inputs["telemetryRoot"] = _telemetry_root(inputs)
    inputs["termsHash"] = _terms_hash(inputs)
    inputs["baseCommit"] = poseidon([tag("base"), inputs["sealKey"], inputs["fee"] % R, inputs["baseSalt"]])
    inputs["quotient"], inputs["remainder"] = divmod(_amount(inputs), 10_000)


def signals_of(inputs: CircuitInputs) -> Signals:
    """The public signals the circuit computes from ``inputs``."""
    amount = _credit(inputs)
    hidden = inputs["hidden"]
    commitment = poseidon([tag("credit"), inputs["ctx"], amount, inputs["creditSalt"]])
    active, observed, excluded = (sum(inputs[name]) for name in ("active", "observed", "excluded"))
    empty = sum(not any(good) and not any(bad) for good, bad in zip(inputs["good"], inputs["bad"], strict=True))
    idle = empty - (len(inputs["good"]) - observed)
    summary = active << 8 | observed << 18 | excluded << 28
    summary += (idle << 38) + sum(_objective(inputs, m)[0] << 2 * m for m in range(4))
    return Signals(
        summary=summary % R,
        credit=(amount + hidden * (commitment - amount)) % R,
        ctx=inputs["ctx"],
        telemetry_root=inputs["telemetryRoot"],
        terms_hash=inputs["termsHash"],
        base_commit=inputs["baseCommit"],
    )


def _words(inputs: CircuitInputs) -> list[int]:
    words = []
    for good, bad, seen, out in zip(*(inputs[k] for k in ("good", "bad", "observed", "excluded")), strict=True):
        word = sum(good[m] * (1 << 56 * m) + bad[m] * (1 << 56 * m + 28) for m in range(4))
        words.append((word + (seen << 224) + (out << 225)) % R)
    return words


def _telemetry_root(inputs: CircuitInputs) -> int:
    words = _words(inputs)
    blocks = [
        sponge(tag("block"), [inputs["sealKey"], j, *words[j * BLOCK : (j + 1) * BLOCK], salt])
        for j, salt in enumerate(inputs["blockSalt"])
    ]
    return sponge(tag("telemetry"), [inputs["sealKey"], sum(inputs["active"]), *blocks])


def _terms_hash(inputs: CircuitInputs) -> int:
    bits = ("sumCapped", "halfUp", "halfEven", "hidden", "exact")
    flags = sum(inputs[name] * (1 << place) for place, name in enumerate(bits))
    values = [inputs["docHi"], inputs["docLo"], *inputs["collector"], flags]
    values += [inputs["cap"], inputs["minimum"], inputs["floorBps"], *inputs["used"], *inputs["target"]]
    values += [value for row in (*inputs["threshold"], *inputs["tierBps"]) for value in row]
    return sponge(tag("terms"), [value % R for value in values])


def _objective(inputs: CircuitInputs, m: int) -> tuple[int, int]:
    """(state, bps) of slot m."""
    good = sum(row[m] for row in inputs["good"]) % R
    total = (good + sum(row[m] for row in inputs["bad"])) % R
    short = less_than(72, good * 10**9, total * inputs["target"][m])
    state = inputs["used"][m] + (0 if total == 0 else 1 + short)
    best = 0
    for threshold, bps in zip(inputs["threshold"][m], inputs["tierBps"][m], strict=True):
        best = bps if less_than(72, good * 10**9, total * threshold) else best
    return state, best


def _uncapped(inputs: CircuitInputs) -> int:
    percentages = [_objective(inputs, m)[1] for m in range(4)]
    largest = 0
    for bps in percentages:
        largest = bps if less_than(14, largest, bps) else largest
    total = sum(percentages)
    capped = 10_000 if less_than(16, 10_000, total) else total
    bps = (largest + inputs["sumCapped"] * (capped - largest)) % R
    return inputs["fee"] * bps % R  # type: ignore[no-any-return]


def _amount(inputs: CircuitInputs) -> int:
    uncapped, bound = _uncapped(inputs), inputs["cap"] * 10_000 % R
    return bound if less_than(78, bound, uncapped) else uncapped


def _credit(inputs: CircuitInputs) -> int:
    quotient: int = inputs["quotient"]
    remainder: int = inputs["remainder"]
    below = less_than(14, remainder, 5000)
    tie = int(remainder == 5000)
    up: int = inputs["halfUp"] * (1 - below) + inputs["halfEven"] * (1 - below - tie + tie * (quotient & 1))
    payable = less_than(78, inputs["minimum"] * 10_000, _amount(inputs))
    rounded = payable * (quotient + up)
    return (rounded + inputs["exact"] * (_uncapped(inputs) - rounded)) % R
