"""Credits with incidents, for tests: one plain claim, and any that an honest prover can prove.

``lying_signals`` is the circuit once more, modulo r and without checks, for provers who enter what they please.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from hypothesis import strategies as st

from ledger.attest.commitments.incident_credit import SLOTS, IncidentClaim, IncidentSignals, LoggedIncident
from ledger.attest.commitments.inputs import CircuitInputs
from ledger.attest.crypto.poseidon import poseidon, sponge, tag
from ledger.domain.attested import SCALAR_ORDER as R
from ledger.domain.money import Rounding
from ledger.domain.terms.compensation_terms import NO_CAP
from tests.circuits.claims import plain_terms
from tests.circuits.lying_prover import less_than

E18 = 10**18
INCIDENTS = (LoggedIncident(3, 2, 900, 100), LoggedIncident(9, 1, 0, 500), LoggedIncident(10, 4, 7, 3))


def plain_incidents(**changes: object) -> IncidentClaim:
    """1,510 requests at 1.5 * 0.80 each cost 1812.00, more than the 800.00 of the tiers."""
    claim = IncidentClaim(
        terms=plain_terms(exact=True),
        incidents=INCIDENTS,
        seal_key=int.from_bytes(sha256(b"seal key").digest()[:31], "big"),
        coefficient=1_500_000_000,
        price=80_000_000_000,
        sum_rules=False,
        tier_amount=800_000_000,
        tier_salt=21,
        total_salt=22,
        ctx=int.from_bytes(sha256(b"ctx").digest()[:31], "big"),
    )
    return replace(claim, **changes)  # type: ignore[arg-type]


@st.composite
def claims(draw: st.DrawFn) -> IncidentClaim:
    """Anywhere an honest prover can be: with some that share the last place, any rounding, cap and minimum."""
    incidents, at = [], 0
    for place in range(draw(st.integers(0, SLOTS + 3))):
        at += draw(st.integers(0, 6))
        length = draw(st.integers(1, 8))
        if at + length > 1023:
            break
        # Those that share a place have counts whose sum has 38 bits.
        counts = st.integers(0, 50) | st.integers(0, (1 << (38 if place < SLOTS - 1 else 36)) - 1)
        incidents.append(LoggedIncident(at, length, draw(counts), draw(counts)))
        at += length
    amount = st.integers(0, 10**6) | st.integers(0, (1 << 64) - 1)
    terms = plain_terms(
        exact=True,
        cap=draw(amount | st.just(NO_CAP)),
        minimum=draw(st.just(0) | amount),
        rounding=draw(st.sampled_from(list(Rounding))),
        credit_hidden=draw(st.booleans()),
        sum_capped=draw(st.booleans()),
    )
    element = st.integers(0, R - 1)
    return IncidentClaim(
        terms=terms,
        incidents=tuple(incidents),
        seal_key=draw(element),
        coefficient=draw(amount),
        price=draw(amount),
        sum_rules=draw(st.booleans()),
        tier_amount=draw(st.integers(0, (1 << 78) - 1) | st.integers(0, 10**9)),
        tier_salt=draw(element),
        total_salt=draw(element),
        ctx=draw(element),
    )


def commit_incidents(inputs: CircuitInputs) -> None:
    """Make the hashes and the division of ``inputs`` consistent with its other values, in place."""
    head = [inputs["sealKey"], inputs["coefficient"], inputs["price"], inputs["sumRules"], sum(inputs["active"])]
    inputs["incidentRoot"] = sponge(tag("incidents"), [value % R for value in [*head, *_words(inputs)]])
    bits = ("sumCapped", "halfUp", "halfEven", "hidden")
    flags = sum(inputs[name] * (1 << place) for place, name in enumerate(bits)) + 16
    terms = [inputs["docHi"], inputs["docLo"], *inputs["collector"], flags, inputs["cap"], inputs["minimum"]]
    inputs["termsHash"] = sponge(tag("terms"), [value % R for value in [*terms, *inputs["otherTerms"]]])
    shown = poseidon([tag("credit"), inputs["ctx"], inputs["tierAmount"] % R, inputs["tierSalt"]])
    amount = inputs["tierAmount"]
    inputs["tierCredit"] = (amount + inputs["hidden"] * (shown - amount)) % R
    inputs["quotient"], inputs["remainder"] = divmod(_amount(inputs), E18)


def lying_signals(inputs: CircuitInputs) -> IncidentSignals:
    """The public signals the circuit computes from ``inputs``."""
    quotient, remainder = inputs["quotient"], inputs["remainder"]
    below = less_than(60, remainder, E18 // 2)
    tie = int(remainder == E18 // 2)
    up = inputs["halfUp"] * (1 - below) + inputs["halfEven"] * (1 - below - tie + tie * (quotient & 1))
    rounded = less_than(176, inputs["minimum"] * E18, _amount(inputs)) * (quotient + up) % R
    total = poseidon([tag("total"), inputs["ctx"], rounded, inputs["totalSalt"]])
    return IncidentSignals(
        summary=(sum(inputs["active"]) + (sum(inputs["windows"]) << 8)) % R,
        credit=(rounded + inputs["hidden"] * (total - rounded)) % R,
        ctx=inputs["ctx"],
        tier_credit=inputs["tierCredit"],
        terms_hash=inputs["termsHash"],
        incident_root=inputs["incidentRoot"],
    )


def _words(inputs: CircuitInputs) -> list[int]:
    columns = zip(*(inputs[name] for name in ("first", "windows", "good", "bad")), strict=True)
    return [(first + (windows << 10) + (good << 20) + (bad << 58)) % R for first, windows, good, bad in columns]


def _amount(inputs: CircuitInputs) -> int:
    valid = sum(inputs["good"]) + sum(inputs["bad"])
    impact = valid * inputs["coefficient"] * inputs["price"] % R
    tiers = inputs["tierAmount"] * 10**14 % R
    best = impact if less_than(176, tiers, impact) else tiers
    combined = (best + inputs["sumRules"] * (tiers + impact - best)) % R
    bound = inputs["cap"] * E18 % R
    return bound if less_than(176, bound, combined) else combined
