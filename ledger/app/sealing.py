"""Sealing what a statement was settled from: block seals, their secret salts, and the collector's signature.

The first version of a statement that a circuit can prove seals every block of its period. A later one replaces the
blocks whose windows say something else, each by an event with the reason, under a salt that was never used before. Base
and credit get new salts with every version, so that an opened one tells nothing of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.app.agreements import RegisteredAgreement
from ledger.app.evidence import Attestor, Collector, Salts, Seal
from ledger.app.ports import Randomness, Secrets, Transaction
from ledger.app.windows import JudgedPeriod
from ledger.domain.attested import SCALAR_ORDER
from ledger.domain.calendar import Period
from ledger.domain.events import NewEvent, StoredEvent
from ledger.domain.naming import seal_stream, telemetry_stream
from ledger.errors import NotFound


@dataclass(frozen=True, slots=True)
class Sealing:
    """What sealing needs beside the facts."""

    attestor: Attestor
    collector: Collector
    randomness: Randomness
    now_ns: int


def seal_period(
    tx: Transaction,
    registered: RegisteredAgreement,
    period: Period,
    judged: JudgedPeriod,
    sealing: Sealing,
    *,
    version: int,
) -> Seal:
    """Seal every block for the first version of a statement that is sealed, keep its salts, and have the collector
    sign the root."""
    agreement, count = registered.agreement, sealing.attestor.block_count(len(judged.windows))
    seal_key = sealing.attestor.seal_key(agreement, period)
    names = [*_salt_names(seal_key, count), *_version_salts(seal_key, version)]
    salts = [_get_or_make(tx.secrets, name, sealing.randomness) for name in names]
    seal = sealing.attestor.seal(agreement, period, judged.windows, salts[:count])
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
    _sign(tx, registered, seal, sealing)
    return seal


def reseal_period(
    tx: Transaction,
    registered: RegisteredAgreement,
    period: Period,
    before: JudgedPeriod,
    judged: JudgedPeriod,
    sealing: Sealing,
    *,
    version: int,
    reason: str,
) -> Seal:
    """Replace the blocks whose windows differ from those of ``before``, for ``version`` of the statement.

    Where none does the seal stays. Raises ``VersionConflict`` where blocks were replaced meanwhile.
    """
    seal_key = sealing.attestor.seal_key(registered.agreement, period)
    seals = seals_of(tx, seal_key, version)
    changed = [event.payload["block"] for event in seals if _differ(event.payload, before, judged)]
    for name in _version_salts(seal_key, version):
        _get_or_make(tx.secrets, name, sealing.randomness)
    salts = [
        _get_or_make(tx.secrets, _resalted(seal_key, version, event.payload["block"]), sealing.randomness)
        if event.payload["block"] in changed
        else _get(tx.secrets, _salt_of(event))
        for event in seals
    ]
    seal = sealing.attestor.seal(registered.agreement, period, judged.windows, salts)
    if not changed:
        return seal
    replacing = [
        NewEvent(
            "block_resealed",
            {
                **{name: seals[index].payload[name] for name in ("sla_id", "seal_key", "block", "first_window")},
                "block_hash": str(seal.blocks[index]),
                "windows": seals[index].payload["windows"],
                "inputs": list(judged.inputs),
                "statement_version": version,
                "replaces": seals[index].id,
                "reason": reason,
            },
            occurred_at_ns=sealing.now_ns,
        )
        for index in changed
    ]
    stream = seal_stream(seal_key)
    tx.events.append(stream, replacing, expected_version=sum(1 for _ in tx.events.stream(stream)))
    _sign(tx, registered, seal, sealing)
    return seal


def seals_of(tx: Transaction, seal_key: int, version: int) -> list[StoredEvent]:
    """The events that seal the blocks of a version of a statement, block by block."""
    last: dict[int, StoredEvent] = {}
    for event in tx.events.stream(seal_stream(seal_key)):
        if event.payload.get("statement_version", 1) <= version:
            last[event.payload["block"]] = event
    return [last[block] for block in sorted(last)]


def load_salts(tx: Transaction, issued: Mapping[str, Any]) -> Salts:
    """The secret salts of what a statement (its payload) was sealed and proved with; raises ``NotFound``."""
    seal_key, version = int(issued["seal_key"]), issued["statement_version"]
    base, credit = (_get(tx.secrets, name) for name in _version_salts(seal_key, version))
    return Salts(tuple(_get(tx.secrets, _salt_of(event)) for event in seals_of(tx, seal_key, version)), base, credit)


def _sign(tx: Transaction, registered: RegisteredAgreement, seal: Seal, sealing: Sealing) -> None:
    signature = sealing.collector.sign(seal.root)
    payload = {
        "sla_id": registered.sla_id,
        "seal_key": str(seal.seal_key),
        "telemetry_root": str(seal.root),
        "r8": {"x": str(signature.r8[0]), "y": str(signature.r8[1])},
        "s": str(signature.s),
    }
    stream = telemetry_stream(seal.seal_key)
    tx.events.append(
        stream,
        [NewEvent("telemetry_signed", payload, occurred_at_ns=sealing.now_ns)],
        expected_version=sum(1 for _ in tx.events.stream(stream)),
    )


def _differ(block: Mapping[str, Any], before: JudgedPeriod, judged: JudgedPeriod) -> bool:
    """Whether the windows of a block count something else than before; who judged them from what does not matter."""
    within = slice(block["first_window"], block["first_window"] + block["windows"])
    return before.windows[within] != judged.windows[within]


def _salt_names(seal_key: int, blocks: int) -> Sequence[str]:
    return [f"salt/{seal_key}/{block}" for block in range(blocks)]


def _version_salts(seal_key: int, version: int) -> tuple[str, str]:
    """Where the salts of base and credit of a statement's version are kept."""
    place = f"salt/{seal_key}" if version == 1 else f"salt/{seal_key}/v{version}"
    return f"{place}/base", f"{place}/credit"


def _salt_of(event: StoredEvent) -> str:
    """Where the salt is kept that a block was sealed with."""
    payload = event.payload
    seal_key, version = payload["seal_key"], payload.get("statement_version", 1)
    if version == 1:
        return f"salt/{seal_key}/{payload['block']}"
    return _resalted(seal_key, version, payload["block"])


def _resalted(seal_key: int | str, version: int, block: int) -> str:
    return f"salt/{seal_key}/v{version}/{block}"


def _get_or_make(secrets: Secrets, name: str, randomness: Randomness) -> int:
    try:
        return _get(secrets, name)
    except NotFound:
        value = SCALAR_ORDER
        while value >= SCALAR_ORDER:
            value = int.from_bytes(randomness.bytes(32), "big") >> 2
        secrets.put(name, value.to_bytes(32, "big"))
        return value


def _get(secrets: Secrets, name: str) -> int:
    return int.from_bytes(secrets.get(name), "big")
