"""Write docs/attestation-vectors.json from the committed example bundles, section by section like the format.

``python -m tests.vectors.make_attestation_vectors`` gives the same file every time; ``test_attestation_vectors`` holds
every value against the code and against a second implementation.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ledger.app.bundles.building import SIGNING_PREFIX, signing_message
from ledger.attest.checks.case import Case
from ledger.attest.checks.equivocation import leaves_in, prove
from ledger.attest.checks.opening import windows_opened
from ledger.attest.commitments import statement, telemetry
from ledger.attest.commitments.agreement_terms import attested_terms
from ledger.attest.commitments.attestation_context import window_counts
from ledger.attest.commitments.incident_credit import IncidentClaim, LoggedIncident, evaluate_incidents
from ledger.attest.commitments.model import PeriodClaim, evaluate
from ledger.attest.commitments.statement import Context, State, Summary
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.attest.commitments.terms import AttestedObjective, AttestedTerms, AttestedTier
from ledger.attest.crypto import babyjub
from ledger.attest.crypto.batch import Batch, batch_node, log_id
from ledger.attest.crypto.keccak import keccak256, keccak_text
from ledger.attest.crypto.pair import OneProof, statement_name
from ledger.attest.crypto.poseidon import poseidon, sponge, tag
from ledger.attest.crypto.signing import NoteKey
from ledger.domain.attested import BASE_ORDER, SCALAR_ORDER
from ledger.domain.money import Rounding
from ledger.domain.record.canonical import canonical_bytes, parse_json
from ledger.domain.record.events import payload_commitment
from ledger.domain.terms.compensation_terms import NO_CAP
from ledger.merkle.checkpoint import parse_checkpoint
from ledger.merkle.hasher import leaf_hash
from tests.support import examples
from tests.support.secrets import Secrets, vector_seed
from tests.vectors import further_vectors

PATH = Path(__file__).resolve().parents[2] / "docs" / "attestation-vectors.json"
FILES = ("bundle", "bundle_next_day", "bundle_withheld")
OTHER_REGISTRY = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def main() -> None:
    PATH.write_text(render(), encoding="utf-8")


def render() -> str:
    """The text of the vector file."""
    case = Case(examples.bundle())
    document = {
        "format": "sla-ledger/attestation-vectors/v1",
        "about": "Test vectors for docs/attestation-format.md, by its sections. Big numbers are decimal strings, bytes "
        "are hex. The example is the statement of tests/vectors/bundle.json. Every secret here is public.",
        "1 conventions": _conventions(),
        "2 canonical JSON": _canonical(),
        "3 agreement": _agreement(case),
        "4 windows": _windows(),
        "5 seal": _seal(case),
        "6 terms": _terms(case),
        "7 decisions": _decisions(),
        "8 signals": _signals(case),
        "9 context": _contexts(case),
        "10 proof": _proof(case),
        "11 ledger entry": _entry(case),
        "12 bundle": _bundles(),
        "13 equivocation": _equivocation(),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _conventions() -> Any:
    return {
        "r": str(SCALAR_ORDER),
        "q": str(BASE_ORDER),
        "tags": {
            name: str(tag(name)) for name in ("block", "telemetry", "terms", "base", "credit", "incidents", "total")
        },
        "keccak of the empty text": keccak256(b"").hex(),
        "poseidon": [
            {"inputs": [str(value) for value in values], "hash": str(poseidon(values))}
            for values in ([1], [1, 2, 3, 4], [1, 2, 3, 4, 5], [*range(1, 17)], [SCALAR_ORDER - 1] * 16)
        ],
        "sponge": [
            {"tag": "terms", "inputs": [str(value) for value in values], "hash": str(sponge(tag("terms"), values))}
            for values in ([7], [*range(15)], [*range(16)])
        ],
    }


def _canonical() -> Any:
    values: list[Any] = [
        {"b": [1, -2, 9007199254740991], "a": {"z": None, "A": True}, "": ""},
        {"€": "Euro", "\r": "return", "1": "one", "\u0080": "control", "ö": "o", "😀": "smile", "דּ": "dalet"},
        ['\u001f " \\ / \b\f\n\r\t \u007f ſ \u2028'],
    ]
    return {
        "exact": [{"value": value, "utf8": canonical_bytes(value).hex()} for value in values],
        "refused": ["1.0", "1e3", "-0", "NaN", "9007199254740992", '{"a":1,"a":1}', '"\\ud800"', "[" * 66 + "]" * 66],
    }


def _agreement(case: Case) -> Any:
    agreement = case.agreement
    return {
        "document": agreement.unsigned_document,
        "canonical bytes": len(agreement.canonical),
        "doc_sha256": agreement.doc_sha256.hex(),
        "ed25519 seeds": {name: vector_seed(name).hex() for name in ("issuer", "customer")},
        "signatures": agreement.document["signatures"],
        "sla_id": "0x" + case.sla_id.hex(),
        "notice": further_vectors.notice(case),
    }


def _windows() -> Any:
    top = (1 << 28) - 1
    counts = [
        WindowCounts((1,), (0,)),
        WindowCounts((0,), (1,)),
        WindowCounts((3, 2), (0, 1)),
        WindowCounts((top,) * 4, (top,) * 4),
        WindowCounts(),
        WindowCounts(observed=False),
        WindowCounts(observed=False, excluded=True),
    ]
    return [_counts(window) | {"word": str(window.word())} for window in counts]


def _counts(window: WindowCounts) -> dict[str, Any]:
    good, bad = zip(*window.pairs(), strict=True)
    return {"good": list(good), "bad": list(bad), "observed": window.observed, "excluded": window.excluded}


def _seal(case: Case) -> Any:
    opened = examples.opening()
    counts = window_counts(windows_opened(case, opened))
    sealed, span = case.bundle["telemetry"], case.period.interval
    long = [WindowCounts((index,), (index % 3,)) for index in range(30)]
    hashes = telemetry.block_hashes(case.seal_key, long, range(1, 8))
    return {
        "seal key": {
            "sla_id": "0x" + case.sla_id.hex(),
            "doc_sha256": case.agreement.doc_sha256.hex(),
            "start_ns": str(span.start_ns),
            "end_ns": str(span.end_ns),
            "window_seconds": case.agreement.window_seconds,
            "seal_key": str(case.seal_key),
        },
        "one block": _sealed(case.seal_key, counts, [int(salt) for salt in opened["salts"]], sealed["root"]),
        "seven blocks": _sealed(
            case.seal_key, long, [*range(1, 8)], str(telemetry.telemetry_root(case.seal_key, 30, hashes))
        ),
        "collector": {
            "seed": vector_seed("collector").hex(),
            "public_key": dict(zip("xy", map(str, case.agreement.collector_key), strict=True)),
            "telemetry_root": sealed["root"],
            "r8": sealed["signature"]["r8"],
            "s": sealed["signature"]["s"],
        },
        "probe": further_vectors.probe(case),
        "sealed anew": further_vectors.sealed_anew(case),
    }


def _sealed(key: int, counts: Any, salts: list[int], root: str) -> dict[str, Any]:
    return {
        "seal_key": str(key),
        "words": [str(window.word()) for window in counts],
        "salts": [str(salt) for salt in salts],
        "blocks": [str(block) for block in telemetry.block_hashes(key, counts, salts)],
        "telemetry_root": root,
    }


def _terms(case: Case) -> Any:
    plain = attested_terms(case.agreement)
    variants = {
        "the example's": plain,
        "sum of the tiers": replace(plain, sum_capped=True),
        "rounding floor": replace(plain, rounding=Rounding.FLOOR),
        "rounding half up": replace(plain, rounding=Rounding.HALF_UP),
        "committed credit": replace(plain, credit_hidden=True),
        "all flags, no cap": replace(
            plain, sum_capped=True, rounding=Rounding.HALF_EVEN, credit_hidden=True, exact=True, cap=NO_CAP
        ),
        "exact amounts": replace(plain, exact=True),
        "unused slots between": replace(plain, objectives=(None, plain.objectives[0], None, AttestedObjective(1))),
    }
    return [
        {
            "name": name,
            "doc_sha256": terms.doc_sha256.hex(),
            "collector": [str(value) for value in terms.collector],
            "sum_capped": terms.sum_capped,
            "rounding": terms.rounding.name.lower(),
            "credit_hidden": terms.credit_hidden,
            "exact": terms.exact,
            "flags": terms.flags,
            "cap": str(terms.cap),
            "minimum": str(terms.minimum),
            "floor_bps": terms.floor_bps,
            "used": list(terms.used()),
            "target": list(terms.targets()),
            "threshold": [list(row) for row in terms.thresholds()],
            "bps": [list(row) for row in terms.bps()],
            "terms_hash": str(terms.hash()),
        }
        for name, terms in variants.items()
    ]


def _decisions() -> Any:
    """Totals at and around each border, and every rounding of one half."""
    edge = AttestedObjective(950_000_000, (AttestedTier(950_000_000, 500), AttestedTier(900_000_000, 1500)))
    terms = AttestedTerms(b"\x01" * 32, babyjub.public_key(vector_seed("collector")), (edge, edge))
    no_tier = replace(terms, objectives=(replace(edge, tiers=()),))
    half = replace(terms, objectives=(edge,))
    cases = [
        ("exactly the target", terms, [(95, 5), (0, 0)], 800_000),
        ("just below the target", terms, [(949_999_999, 50_000_001), (1, 0)], 800_000),
        ("the second tier", terms, [(899, 101), (949, 51)], 800_000),
        ("exactly a threshold", terms, [(90, 10), (19, 1)], 800_000),
        ("a sum", replace(terms, sum_capped=True), [(89, 11), (94, 6)], 800_000),
        ("a cap", replace(terms, cap=30_000), [(94, 6), (1, 0)], 800_000),
        ("at the minimum nothing is paid", replace(terms, minimum=40_000), [(94, 6), (1, 0)], 800_000),
        ("above the minimum all is paid", replace(terms, minimum=39_999), [(94, 6), (1, 0)], 800_000),
        ("half a unit, floor", replace(half, rounding=Rounding.FLOOR), [(94, 6)], 50),
        ("half a unit, half up", replace(half, rounding=Rounding.HALF_UP), [(94, 6)], 50),
        ("half a unit, half even", replace(half, rounding=Rounding.HALF_EVEN), [(94, 6)], 50),
        ("one and a half, half even", replace(half, rounding=Rounding.HALF_EVEN), [(94, 6)], 30),
        ("a breach without tiers", no_tier, [(1, 99)], 800_000),
    ]
    return [_decision(name, terms, totals, fee) for name, terms, totals, fee in cases]


def _decision(name: str, terms: AttestedTerms, totals: list[tuple[int, int]], fee: int) -> dict[str, Any]:
    found = evaluate(
        PeriodClaim(
            terms=terms,
            windows=spread(totals),
            seal_key=1,
            block_salts=(1,),
            fee=fee,
            base_salt=1,
            credit_salt=1,
            ctx=1,
        )
    )
    return {
        "name": name,
        "objectives": [
            {
                "good": good,
                "bad": bad,
                "target": slot.target_ppb,
                "tiers": [[tier.threshold_ppb, tier.bps] for tier in slot.tiers],
            }
            for (good, bad), slot in zip(totals, terms.objectives, strict=True)
            if slot is not None
        ],
        "sum_capped": terms.sum_capped,
        "rounding": terms.rounding.name.lower(),
        "fee": str(fee),
        "cap": str(terms.cap),
        "minimum": str(terms.minimum),
        "states": [int(result.state) for result in found.objectives],
        "bps": found.bps,
        "amount_e4": str(found.amount_e4),
        "credit": str(found.credit),
    }


def spread(totals: list[tuple[int, int]]) -> tuple[WindowCounts, ...]:
    """Totals in windows of at most 28 bits each."""
    top = (1 << 28) - 1
    windows = []
    while any(good or bad for good, bad in totals):
        now = [(min(good, top), min(bad, top)) for good, bad in totals]
        windows.append(WindowCounts(tuple(good for good, _ in now), tuple(bad for _, bad in now)))
        totals = [(g - x, b - y) for (g, b), (x, y) in zip(totals, now, strict=True)]
    return tuple(windows)


def _signals(case: Case) -> Any:
    summaries = [
        Summary.decode(case.signals.summary),
        Summary((State.NO_DATA, State.UNUSED, State.UNUSED, State.UNUSED), 1, 1, 0, 1),
        Summary((State.MET, State.BREACHED, State.NO_DATA, State.UNUSED), 746, 700, 40, 3),
    ]
    salt = int(case.bundle["base"]["salt"])
    return {
        "summary": [
            {
                "states": [int(state) for state in one.states],
                "windows": one.windows,
                "observed": one.observed,
                "excluded": one.excluded,
                "idle": one.idle,
                "summary": str(one.encode()),
            }
            for one in summaries
        ],
        "base commitment": {
            "seal_key": str(case.seal_key),
            "fee": str(case.agreement.compensation.base),
            "salt": str(salt),
            "base_commit": str(statement.base_commit(case.seal_key, case.agreement.compensation.base, salt)),
        },
        "credit commitment": {
            "ctx": str(case.ctx),
            "credit": case.issued["credit"]["minor_units"],
            "salt": "12345678901234567890",
            "credit_commit": str(
                statement.credit_commit(case.ctx, int(case.issued["credit"]["minor_units"]), 12345678901234567890)
            ),
        },
        "signals": [str(value) for value in case.signals.as_tuple()],
        "incident credit": _incident_credits(case),
    }


def _incident_credits(case: Case) -> Any:
    exact = replace(attested_terms(case.agreement), exact=True, cap=NO_CAP, minimum=0)
    some = (LoggedIncident(3, 2, 900, 100), LoggedIncident(9, 1, 0, 500), LoggedIncident(10, 4, 7, 3))
    top = (1 << 38) - 1
    plain = IncidentClaim(exact, some, case.seal_key, 1_500_000_000, 80_000_000_000, False, 800_000_000, 3, 4, case.ctx)
    half = replace(plain, incidents=some[2:], coefficient=10**9, price=50_000_000, tier_amount=0)
    variants = {
        "the larger": plain,
        "their sum": replace(plain, sum_rules=True),
        "none": replace(plain, incidents=()),
        "half a unit, half up": replace(half, terms=replace(exact, rounding=Rounding.HALF_UP)),
        "half a unit, half even": replace(half, terms=replace(exact, rounding=Rounding.HALF_EVEN)),
        "at the minimum": replace(plain, terms=replace(exact, minimum=181_200)),
        "capped and committed": replace(plain, terms=replace(exact, cap=100_000, credit_hidden=True)),
        "64 of the largest": replace(plain, incidents=tuple(LoggedIncident(2 * at, 1, top, top) for at in range(64))),
        "67, of which the last place has four": replace(
            plain, incidents=tuple(LoggedIncident(2 * at, 1, at, 1000 + at) for at in range(67))
        ),
    }
    return [_incident_credit(name, claim) for name, claim in variants.items()]


def _incident_credit(name: str, claim: IncidentClaim) -> dict[str, Any]:
    found, terms = evaluate_incidents(claim), claim.terms
    return {
        "name": name,
        "terms": [str(value) for value in terms.preimage()],
        "rounding": terms.rounding.name.lower(),
        "committed": terms.credit_hidden,
        "seal_key": str(claim.seal_key),
        "incidents": [[each.first, each.windows, str(each.good), str(each.bad)] for each in claim.incidents],
        "coefficient": str(claim.coefficient),
        "price": str(claim.price),
        "sum_rules": claim.sum_rules,
        "tier_amount": str(claim.tier_amount),
        "tier_salt": str(claim.tier_salt),
        "total_salt": str(claim.total_salt),
        "ctx": str(claim.ctx),
        "credit": str(found.credit),
        "signals": [str(value) for value in found.signals.as_tuple()],
        "steps": further_vectors.incident_steps(claim),
    }


def _contexts(case: Case) -> Any:
    span, given = case.period.interval, case.bundle["context"]
    first = Context(int(given["chain_id"]), given["registry"], case.sla_id, span.start_ns, span.end_ns, 1, 1)
    again = replace(first, statement_version=2, previous=first.value())
    elsewhere = replace(first, chain_id=31337, registry=OTHER_REGISTRY, terms_version=2)
    return [
        {
            "name": name,
            "chain_id": str(one.chain_id),
            "registry": one.registry,
            "sla_id": "0x" + one.sla_id.hex(),
            "start_ns": str(one.start_ns),
            "end_ns": str(one.end_ns),
            "terms_version": one.terms_version,
            "statement_version": one.statement_version,
            "prev_ctx": str(one.previous),
            "ctx": str(one.value()),
        }
        for name, one in (("the example's", first), ("its restatement", again), ("other terms elsewhere", elsewhere))
    ]


def _proof(case: Case) -> Any:
    proof = bytes.fromhex(case.proof["proof"])
    circuit_id = case.verification_key.circuit_id()
    leaf = case.name.leaf(case.signals.ctx)
    other = examples.bundle("bundle_next_day")["proof"]
    signals = tuple(int(signal) for signal in other["signals"])
    beside = statement_name(OneProof(circuit_id, signals, bytes.fromhex(other["proof"]))).leaf(signals[2])
    return {
        "verification_key": case.proof["verification_key"],
        "circuit": case.circuit_name,
        "circuit_id": circuit_id.hex(),
        "signals": case.proof["signals"],
        "signals_hash": case.signals.digest().hex(),
        "proof": proof.hex(),
        "proof_hash": statement.proof_hash(proof).hex(),
        "leaf": leaf.hex(),
        "two proofs": further_vectors.pair(case),
        "versions": further_vectors.versions(case),
        "small batches": further_vectors.small_batches(case, leaf),
        "batch": _batch(case, [leaf, beside, *(keccak256(bytes([n])) for n in range(3))]),
    }


def _batch(case: Case, leaves: list[bytes]) -> Any:
    """Two statements and three leaves more, under the checkpoint of the example's bundle."""
    batch = Batch.of(leaves)
    found = parse_checkpoint(case.bundle["log"]["checkpoint"].partition("\n\n")[0] + "\n")
    arguments = [log_id(found.origin), found.size.to_bytes(32, "big"), found.root, batch.root]
    selector = keccak_text("anchorBatch((bytes32,uint64,bytes32),bytes32)")[:4]
    return {
        "leaves": [leaf.hex() for leaf in leaves],
        "batch_root": batch.root.hex(),
        "paths": [[sibling.hex() for sibling in batch.path(leaf)] for leaf in leaves],
        "checkpoint": {"origin": found.origin, "size": found.size, "root": found.root.hex()},
        "log_id": log_id(found.origin).hex(),
        "batch_node": batch_node(found, batch.root).hex(),
        "call_data": (selector + b"".join(arguments)).hex(),
    }


def _entry(case: Case) -> Any:
    event, log = case.bundle["seals"][0], case.bundle["log"]
    found = parse_checkpoint(log["checkpoint"].partition("\n\n")[0] + "\n")
    key = NoteKey(found.origin, Secrets.of_vectors().key("log"))
    return {
        "payload": event["payload"],
        "salt": event["salt"],
        "commitment": payload_commitment(event["payload"], bytes.fromhex(event["salt"])).hex(),
        "header": event["header"],
        "entry": canonical_bytes(event["header"]).decode(),
        "leaf_hash": leaf_hash(canonical_bytes(event["header"])).hex(),
        "inclusion": {"seq": event["seq"], "path": event["inclusion"]},
        "other entries": further_vectors.commitments(case),
        "differences": further_vectors.deltas(case),
        "cosignature": further_vectors.cosignature(case),
        "checkpoint": {
            "ed25519 seed": vector_seed("log").hex(),
            "vkey": key.key.vkey(),
            "origin": found.origin,
            "size": found.size,
            "root": found.root.hex(),
            "note": log["checkpoint"],
        },
    }


def _bundles() -> Any:
    found = []
    for name in FILES:
        bundle = examples.bundle(name)
        found.append(
            {
                "file": f"tests/vectors/{name}.json",
                "bytes": len(canonical_bytes(bundle)),
                "sha256": hashlib.sha256(canonical_bytes(bundle)).hexdigest(),
                "signing message sha256": hashlib.sha256(signing_message(bundle)).hexdigest(),
                "issuer_signature": bundle["issuer_signature"],
            }
        )
    return {"signing prefix": SIGNING_PREFIX.decode(), "files": found}


def _equivocation() -> Any:
    """The example's log, and the same log with another block hash in the place of the first seal."""
    forged = examples.forger()
    forged.seal["payload"]["block_hash"] = "7"
    told = (examples.forger().log().sign(), forged.log().sign())
    made = prove(leaf for bundle in told for leaf in leaves_in(bundle, None))
    found = parse_json(made, max_bytes=len(made))
    return {
        "document": found,
        "sha256": hashlib.sha256(made).hexdigest(),
        "leaf_hashes": [leaf_hash(canonical_bytes(leaf["header"])).hex() for leaf in found["leaves"]],
    }


if __name__ == "__main__":
    main()
