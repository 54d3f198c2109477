"""Honest bundles of every kind, from the real use cases over storage in memory.

In the place of the circuits stands a key whose maker kept its secrets (``Trapdoor``): its proofs verify like any
other, in milliseconds and for periods of every size. What a circuit would prove is the model's, as ever, and whether
circuit and model agree is for tests/circuits to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from typing import Any

from eth_account import Account

from ledger.app.agreements.registering import load_timeline, register_agreement, terminate_agreement
from ledger.app.bundles.building import build_bundle, build_opening
from ledger.app.facts.observations import record_observations
from ledger.app.judgement.judging import Judge
from ledger.app.judgement.windows import load_windows
from ledger.app.periods.closing import Cause, close_period
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.app.ports.evidence import Attestation, StatementContext
from ledger.app.settlement.block_seals import BlockSeals
from ledger.app.settlement.probe import ProbeDesk
from ledger.app.settlement.sealing import load_salts
from ledger.app.settlement.statements import issued_event
from ledger.attest.checks.bundle_schema import TRUST_FORMAT
from ledger.attest.checks.case import Case
from ledger.attest.checks.probe_checks import telemetry_signature_holds
from ledger.attest.commitments.inputs import CircuitInputs
from ledger.attest.crypto import babyjub
from ledger.attest.crypto.batch import Batch, log_id
from ledger.attest.crypto.evm_tx import PUBLISH_SIGNATURE
from ledger.attest.crypto.keccak import keccak256, keccak_text
from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.attest.crypto.verification_key import VerificationKey, parse_verification_key
from ledger.attest.proving.attestor import CircuitAttestor
from ledger.attest.proving.circuits import load_circuits
from ledger.attest.proving.prover import PublicSignals
from ledger.domain.credits.restatement import carries_proof
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.termination import Notice, notice_message, unsigned_notice
from ledger.domain.time.instant import SECOND_NS, parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.windows.blocks import block_ends_ns
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.resources import resource_dir
from tests.contracts.trapdoor import Trapdoor
from tests.support.forging import Forger
from tests.support.secrets import Secrets
from tests.unit.app.conftest import (
    COLLECTOR,
    CUSTOMER,
    ISSUER,
    Desk,
    find_requests,
    log,
    make_desk,
    read_rows,
    row,
    signed_agreement,
)
from tests.unit.app.test_stages import runner

CHAIN_ID, REGISTRY = 31337, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
LOG, PROBE = b"\x05" * 32, b"\x21" * 32
LOG_KEY = NoteKey("example.com/log", SigningKey(LOG))
SECRETS = Secrets(
    {
        "issuer": ISSUER,
        "issuer-evm": ISSUER,
        "customer": CUSTOMER,
        "customer-evm": CUSTOMER,
        "collector": COLLECTOR,
        "log": LOG,
        "deployer-evm": b"\x09" * 32,
    }
)
HOUR_NS = 3600 * SECOND_NS


@dataclass(frozen=True)
class TrapdoorKey:
    """What a prover's key is asked for."""

    verification_key: VerificationKey
    manifest: Mapping[str, Any]

    @property
    def circuit_id(self) -> bytes:
        return self.verification_key.circuit_id()


class TrapdoorProver:
    """Proves whatever it is told; only honest models ask it here."""

    def __init__(self, seed: str = "bundles of every kind") -> None:
        self._trapdoor = Trapdoor(seed)

    @cached_property
    def _key(self) -> TrapdoorKey:
        return TrapdoorKey(parse_verification_key(self._trapdoor.verification_key), {"dev_unsafe": True})

    def key(self) -> TrapdoorKey:
        return self._key

    def prove(self, inputs: CircuitInputs, signals: PublicSignals) -> bytes:
        return self.forge(signals.as_tuple())

    def forge(self, signals: tuple[int, ...]) -> bytes:
        return self._trapdoor.forge(signals)


PERIODS, CREDITS = TrapdoorProver(), TrapdoorProver("incident credits")
"""Provers of the circuits of periods, and of that of incident credits."""


@cache
def attestor() -> CircuitAttestor:
    circuits = load_circuits(resource_dir("circuits"))
    provers: Any = {circuit.name: PERIODS if circuit.windows else CREDITS for circuit in circuits}
    return CircuitAttestor(circuits, provers)


@cache
def trust() -> bytes:
    """The pins for every kind."""
    circuits = [{"circuit_id": each.key().circuit_id.hex(), "dev_unsafe": True} for each in (PERIODS, CREDITS)]
    found = {
        "format": TRUST_FORMAT,
        "log": {"origin": LOG_KEY.key.name, "vkey": LOG_KEY.key.vkey()},
        "issuer_ed25519_public_key": SigningKey(ISSUER).public_key.hex(),
        "customer_ed25519_public_key": SigningKey(CUSTOMER).public_key.hex(),
        "circuits": circuits,
        "chain_id": str(CHAIN_ID),
        "registry": REGISTRY,
        "root_chains": [{"chain_id": "10", "registry": REGISTRY}],
    }
    return canonical_bytes(found)


@dataclass(frozen=True)
class Evidence:
    """A statement's bundle in its exact bytes, and its opening where something is sealed."""

    bundle: bytes
    opening: bytes | None

    def forger(self) -> Forger:
        return Forger(json.loads(self.bundle), SECRETS)


class Office:
    """An agreement and its ledger; every method is one thing that a day brings."""

    def __init__(self, name: str = "agreement.yaml", *, first: str = "2023-06-14", **terms: Any) -> None:
        self.desk: Desk = make_desk()
        self.desk.agreement = Agreement.from_document(signed_agreement(name, **terms))
        self.desk.attestor = attestor()
        self.desk.period = self.desk.agreement.period_starting(date.fromisoformat(first))
        self.desk.clock.now = self.desk.period.interval.start_ns
        self.desk.register()

    # --- what happens ---

    def at(self, text: str) -> Office:
        self.desk.clock.now = parse_instant_ns(text)
        return self

    def at_the_end(self) -> Office:
        self.desk.clock.now = self.desk.period.interval.end_ns
        return self

    def hand_in(self, *rows: dict[str, Any], span: Interval | None = None, body: bytes | None = None) -> Office:
        desk = self.desk
        with desk.database.begin() as tx:
            at = load_timeline(tx, desk.attestor.sla_id(desk.agreement), desk.attestor)
            record_observations(
                tx,
                at.versions[-1],
                body if body is not None else log(*rows),
                read_rows=read_rows,
                declared_complete=span or desk.period.interval,
                now_ns=max(desk.clock.now_ns(), (span or desk.period.interval).end_ns),
            )
        return self

    def seal_as_it_goes(self) -> Office:
        """Every block with its grace."""
        desk = self.desk
        judge = Judge(
            desk.attestor,
            read_rows=read_rows,
            find_evidence=lambda *_: (),
            find_requests=find_requests,
            clock=desk.clock,
        )
        seals = BlockSeals(desk.database, judge, desk.randomness)
        blocks = desk.attestor.block_count(desk.agreement.window_count(desk.period))
        for ends_ns in sorted(set(block_ends_ns(desk.agreement, desk.period, blocks))):
            desk.clock.now = ends_ns + desk.agreement.grace_seconds * SECOND_NS
            seals.seal_due()
        return self

    def exclude(self, name: str, clause: str, start: str, minutes: int, **said: Any) -> Office:
        from_ns = parse_instant_ns(start)
        asked = {"reason": "agreed", "ticket": "CHG-7", "approved_by": "board", **said}
        desk = ExclusionDesk(self.desk.database, self.desk.attestor, self.desk.clock)
        desk.record(self.sla_id, AskedExclusion(name, clause, from_ns, from_ns + minutes * 60 * SECOND_NS, **asked))
        return self

    def amend(self, **changes: Any) -> Office:
        desk = self.desk
        with desk.database.begin() as tx:
            register_agreement(
                tx,
                Agreement.from_document(signed_agreement(**changes)),
                attestor=desk.attestor,
                verify=verify,
                terms_version=len(load_timeline(tx, self.sla_id, desk.attestor).versions) + 1,
                registration=None,
                customer_signature=None,
                now_ns=desk.clock.now_ns(),
            )
        return self

    def end_on(self, day: str, *signers: str) -> Office:
        desk = self.desk
        with desk.database.begin() as tx:
            at = load_timeline(tx, self.sla_id, desk.attestor)
            unsigned = unsigned_notice(self.sla_id, at.timeline.newest.doc_sha256.hex(), day, "moved away")
            signatures = {name: SECRETS.key(name).sign(notice_message(unsigned)).hex() for name in signers}
            notice = Notice.from_document({**unsigned, "signatures": signatures})
            terminate_agreement(tx, at, notice, verify=verify, now_ns=desk.clock.now_ns())
        return self

    def close(self, name: str | None = None) -> Office:
        """Close a period and issue what there is to issue."""
        desk = self.desk
        with desk.database.begin() as tx:
            at = load_timeline(tx, self.sla_id, desk.attestor)
            terms, period = at.timeline.named(name or str(desk.period))
            close_period(tx, at.of(terms), period, cause=Cause.REQUEST, now_ns=desk.clock.now_ns())
        return self.settle()

    def settle(self) -> Office:
        while runner(self.desk).run_once():
            pass
        return self

    def probe_signs(self, name: str) -> Office:
        with self.desk.database.read() as tx:
            said = issued_event(tx, name).payload
        made = babyjub.sign(PROBE, int(said["telemetry_root"]))
        signature = {"r8": dict(zip("xy", map(str, made.r8), strict=True)), "s": str(made.s)}
        document = {
            "format": "sla-ledger/probe-signature/v1",
            "statement_id": name,
            "telemetry_root": said["telemetry_root"],
            "signature": signature,
        }
        ProbeDesk(self.desk.database, telemetry_signature_holds, self.desk.clock).record(document)
        return self

    # --- what is left of it ---

    @property
    def sla_id(self) -> str:
        return self.desk.attestor.sla_id(self.desk.agreement)

    def statements(self) -> list[str]:
        """The ids of all that was issued, in order."""
        with self.desk.database.read() as tx:
            found = sorted(tx.views.statements(), key=lambda row: (row["start_ns"], row["statement_version"]))
            return [each["id"] for each in found]

    def evidence(self, name: str | None = None, *, published_on: Sequence[int] = ()) -> Evidence:
        """The bundle of a statement, by default of the newest, with its proof and a party's transaction, and with
        batch roots on these chains."""
        desk, name = self.desk, name or self.statements()[-1]
        with desk.database.begin() as tx:
            size = tx.log.size()
            note = sign_checkpoint(Checkpoint(LOG_KEY.key.name, size, tx.log.root(size)), [LOG_KEY])
            tx.log.save_checkpoint(size, tx.log.root(size), note.decode())
            built = build_bundle(tx, name, vkey=LOG_KEY.key.vkey(), sign=SigningKey(ISSUER).sign, attestor=attestor())
            sealed = issued_event(tx, name).payload["seal_key"] is not None
            opening = build_opening(tx, name) if sealed else None
        forged = Forger(json.loads(built), SECRETS)
        if carries_proof(forged.issued):
            forged.bundle |= self._proof(name)
            forged.transact()
        if published_on:
            forged.bundle["roots"] = [self._root(forged, chain_id) for chain_id in published_on]
        return Evidence(forged.sign(), opening)

    def _root(self, forged: Forger, chain_id: int) -> dict[str, Any]:
        """A batch with two other leaves beside the log as it was with the statement, or the log alone."""
        case, place = Case(forged.bundle), forged.bundle["statement"]["seq"]
        size, batch, leaf = place + 1, bytes(32), None
        if case.bundle["proof"] is not None:
            leaf = case.name.leaf(case.ctx)
            made = Batch.of([leaf, *(keccak256(bytes([number])) for number in range(2))])
            batch = made.root
        with self.desk.database.read() as tx:
            root, path = tx.log.root(size), tx.log.inclusion_proof(place, size)
        data = log_id(LOG_KEY.key.name) + size.to_bytes(32, "big") + root + batch
        fields = {"chainId": chain_id, "nonce": 7, "gas": 120_000, "to": REGISTRY, "value": 0, "type": 2}
        fees = {"maxFeePerGas": 10**9, "maxPriorityFeePerGas": 1}
        signed = Account.sign_transaction({**fields, **fees, "data": keccak_text(PUBLISH_SIGNATURE)[:4] + data}, ISSUER)
        return {
            "chain_id": str(chain_id),
            "registry": REGISTRY,
            "issuer": case.agreement.issuer.evm_address,
            "size": size,
            "root": root.hex(),
            "inclusion": [node.hex() for node in path],
            "batch_root": "0x" + batch.hex(),
            "siblings": None if leaf is None else ["0x" + node.hex() for node in made.path(leaf)],
            "raw_transaction": bytes(signed.raw_transaction).hex(),
            "tx_hash": "0x" + bytes(signed.hash).hex(),
            "block_number": 9,
            "block_hash": "0x" + "cd" * 32,
        }

    def _proof(self, name: str) -> dict[str, Any]:
        base, _, version = name.rpartition(".v")
        previous, number, found = 0, 0, {}
        replaced: dict[str, Any] = {}
        for each in range(1, int(version) + 1):
            with self.desk.database.read() as tx:
                event = issued_event(tx, f"{base}.v{each}")
                if not carries_proof(event.payload):
                    continue
                number += 1
                context = StatementContext(CHAIN_ID, REGISTRY, event.payload["terms_version"], number, previous)
                at = load_timeline(tx, self.sla_id, self.desk.attestor)
                terms, period = at.timeline.named(event.payload["period"])
                windows = load_windows(tx, at.of(terms), period, before_seq=event.place).windows
                salts = load_salts(tx, event.payload)
            made = self.desk.attestor.attest(terms.agreement, period, windows, salts, context)
            members = {"chain_id": str(CHAIN_ID), "registry": REGISTRY, "prev_ctx": str(previous)}
            committed = terms.agreement.compensation.credit_visibility == "committed"
            found = {
                "context": members | replaced,
                "base": {"salt": str(salts.base)},
                "credit_salt": str(salts.credit) if committed else None,
                "proof": _shown(made),
                "anchor": {"raw_transaction": "00", "tx_hash": "", "block_number": 7, "block_hash": "0x" + "ab" * 32},
            }
            replaced, previous = {"prev_signals": found["proof"]["signals"]}, made.signals[2]
            if made.incident_proof is not None:
                total = str(salts.total) if committed else None
                found["incident_proof"] = _shown(made.incident_proof) | {"credit_salt": total}
                replaced["prev_incident_signals"] = found["incident_proof"]["signals"]
        return found


def _shown(made: Attestation) -> dict[str, Any]:
    return {
        "circuit": made.circuit,
        "signals": [str(each) for each in made.signals],
        "proof": made.proof.hex(),
        "verification_key": dict(made.verification_key),
        "manifest": {"circuit": made.circuit, "circuit_id": made.circuit_id.hex(), "dev_unsafe": True},
    }


def failed(name: str, at: str) -> dict[str, Any]:
    return row(name, at=at, error_code=500)


Kind = Callable[[], Evidence]
