"""Closing a period: seal its windows, settle it, and issue the statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from ledger.app.agreements import RegisteredAgreement
from ledger.app.credit_lines import issue_credit_lines
from ledger.app.evidence import Attestor, Collector, Salts, Seal
from ledger.app.outbox import Stage
from ledger.app.ports import Randomness, Receipt, Secrets, Transaction
from ledger.app.windows import JudgedPeriod, load_windows
from ledger.domain.attested import SCALAR_ORDER
from ledger.domain.calendar import Period, tzdata_version
from ledger.domain.events import NewEvent, StoredEvent
from ledger.domain.naming import seal_stream, statement_id, statement_stream, telemetry_stream
from ledger.domain.settlement import Settlement, SettlementState, settle
from ledger.errors import NotFound


@dataclass(frozen=True, slots=True)
class IssuedStatement:
    """A statement in the log. ``settlement`` is what it says."""

    id: str
    version: int
    settlement: Settlement
    receipt: Receipt

    @property
    def proof_due(self) -> bool:
        """Whether a proof and its anchor follow."""
        return not self.settlement.not_attestable and self.settlement.state is SettlementState.SETTLED


def issue_statement(
    tx: Transaction,
    registered: RegisteredAgreement,
    period: Period,
    judged: JudgedPeriod,
    *,
    attestor: Attestor,
    collector: Collector,
    randomness: Randomness,
    now_ns: int,
) -> IssuedStatement:
    """Seal, settle and issue with credit lines; a settled, attestable statement is queued for its proof.

    Issuing again for unchanged windows gives the same statement. A closed period whose windows changed needs a
    restatement, which this release does not make: it raises ``IdempotencyConflict``.
    """
    agreement = registered.agreement
    settlement = settle(agreement, period, judged.windows)
    attestable = not settlement.not_attestable
    seal = None
    if attestable:
        seal = _seal(tx, registered, period, judged, attestor, collector, randomness, now_ns)
    version = 1
    name = statement_id(registered.sla_id, period.first, version)
    coverage = settlement.coverage
    payload = {
        "statement_id": name,
        "sla_id": registered.sla_id,
        "doc_sha256": agreement.doc_sha256.hex(),
        "terms_version": registered.terms_version,
        "statement_version": version,
        "period": str(period),
        "start_ns": str(period.interval.start_ns),
        "end_ns": str(period.interval.end_ns),
        "tzdata": tzdata_version(),
        "windows": coverage.windows,
        "observed": coverage.observed,
        "excluded": coverage.excluded,
        "idle": coverage.idle,
        "state": str(settlement.state),
        "objectives": [
            {
                "id": result.objective.id,
                "good": result.good,
                "valid": result.valid,
                "target": result.objective.target,
                "state": str(result.state),
            }
            for result in settlement.objectives
        ],
        "credit": None
        if settlement.credit is None
        else {"currency": settlement.currency, "minor_units": str(settlement.credit)},
        "trace": {} if settlement.trace is None else settlement.trace.as_document(),
        "attestable": attestable,
        "unattested_reasons": list(settlement.not_attestable),
        "seal_key": None if seal is None else str(seal.seal_key),
        "telemetry_root": None if seal is None else str(seal.root),
    }
    (receipt,) = tx.events.append(
        statement_stream(registered.sla_id, period.first),
        [NewEvent("statement_issued", payload, occurred_at_ns=period.interval.end_ns)],
        expected_version=version - 1,
        idempotency_key=f"statement/{name}",
    )
    issue_credit_lines(tx, registered, settlement, judged.windows, statement_id=name, statement_event=receipt.event_id)
    issued = IssuedStatement(name, version, settlement, receipt)
    if issued.proof_due:
        tx.outbox.add(receipt.event_id, Stage.PROVE)
    return issued


def issued_event(tx: Transaction, statement_id: str) -> StoredEvent:
    """The event that issued a statement; raises ``NotFound``."""
    row = tx.views.statement(statement_id)
    first = date.fromisoformat(row["period"].partition("/")[0])
    for event in tx.events.stream(statement_stream(row["sla_id"], first)):
        if event.payload["statement_id"] == statement_id:
            return event
    raise NotFound(f"the log holds no event that issued {statement_id}", statement_id=statement_id)


def issued_for(tx: Transaction, registered: RegisteredAgreement, period: Period) -> IssuedStatement:
    """The newest statement of a period; raises ``NotFound`` where none was issued."""
    newest: StoredEvent | None = None
    for event in tx.events.stream(statement_stream(registered.sla_id, period.first)):
        newest = event
    if newest is None:
        raise NotFound(f"no statement of {period} was issued for {registered.sla_id}", sla_id=registered.sla_id)
    settlement = settle(
        registered.agreement, period, load_windows(tx, registered, period, before_seq=newest.seq).windows
    )
    payload, receipt = newest.payload, Receipt(newest.id, newest.stream, newest.version, newest.seq)
    return IssuedStatement(payload["statement_id"], payload["statement_version"], settlement, receipt)


def load_salts(secrets: Secrets, seal_key: int, blocks: int) -> Salts:
    """The secret salts of a period sealed in this many blocks; raises ``NotFound``."""
    base, credit = (_get(secrets, _salt_name(seal_key, name)) for name in ("base", "credit"))
    return Salts(tuple(_get(secrets, _salt_name(seal_key, index)) for index in range(blocks)), base, credit)


def _seal(
    tx: Transaction,
    registered: RegisteredAgreement,
    period: Period,
    judged: JudgedPeriod,
    attestor: Attestor,
    collector: Collector,
    randomness: Randomness,
    now_ns: int,
) -> Seal:
    """Seal every block, keep its salts, and have the collector sign the root."""
    agreement, count = registered.agreement, attestor.block_count(len(judged.windows))
    seal_key = attestor.seal_key(agreement, period)
    names = [*(str(index) for index in range(count)), "base", "credit"]
    salts = [_get_or_make(tx.secrets, _salt_name(seal_key, name), randomness) for name in names]
    seal = attestor.seal(agreement, period, judged.windows, salts[:count])
    per_block = seal.windows_per_block
    blocks = [
        NewEvent(
            "block_sealed",
            {
                "sla_id": registered.sla_id,
                "seal_key": str(seal_key),
                "block": index,
                "block_hash": str(block_hash),
                "first_window": index * per_block,
                "windows": max(0, min(per_block, len(judged.windows) - index * per_block)),
                "inputs": list(judged.inputs),
            },
            occurred_at_ns=period.interval.end_ns,
        )
        for index, block_hash in enumerate(seal.blocks)
    ]
    tx.events.append(seal_stream(seal_key), blocks, expected_version=0, idempotency_key=f"seal/{seal_key}")
    signature = collector.sign(seal.root)
    tx.events.append(
        telemetry_stream(seal_key),
        [
            NewEvent(
                "telemetry_signed",
                {
                    "sla_id": registered.sla_id,
                    "seal_key": str(seal_key),
                    "telemetry_root": str(seal.root),
                    "r8": {"x": str(signature.r8[0]), "y": str(signature.r8[1])},
                    "s": str(signature.s),
                },
                occurred_at_ns=now_ns,
            )
        ],
        expected_version=0,
        idempotency_key=f"telemetry/{seal_key}/{seal.root}",
    )
    return seal


def _get_or_make(secrets: Secrets, name: str, randomness: Randomness) -> int:
    try:
        return _get(secrets, name)
    except NotFound:
        value = SCALAR_ORDER
        while value >= SCALAR_ORDER:
            value = int.from_bytes(randomness.bytes(32), "big") >> 2
        secrets.put(name, value.to_bytes(32, "big"))
        return value


def _salt_name(seal_key: int, what: str | int) -> str:
    """Where the salt of a block (its index), of the base or of the credit is kept."""
    return f"salt/{seal_key}/{what}"


def _get(secrets: Secrets, name: str) -> int:
    return int.from_bytes(secrets.get(name), "big")
