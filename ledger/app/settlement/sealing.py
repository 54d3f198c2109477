"""Sealing what a statement was settled from: block seals, their secret salts, and the collector's signature.

A block is sealed while its period runs, once its last window and the grace are over
(``ledger.app.settlement.block_seals``), and what is left when the first statement is issued. A statement whose
windows say something else replaces the blocks that they are in, each by an event with the reason, under a salt that
was never used before. Base and credit get new salts with every version, so that an opened one tells nothing of
another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.app.agreements.registering import RegisteredAgreement
from ledger.app.judgement.windows import JudgedPeriod
from ledger.app.ports.evidence import Attestor, Collector, Salts, Seal
from ledger.app.ports.store import Randomness, Secrets, Transaction
from ledger.domain.attested import BLOCK_WINDOWS, SCALAR_ORDER
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import seal_stream, telemetry_stream
from ledger.domain.time.calendar import Period
from ledger.domain.windows.blocks import block_ends_ns
from ledger.errors import NotFound


@dataclass(frozen=True, slots=True)
class Sealing:
    """What sealing needs beside the facts."""

    attestor: Attestor
    collector: Collector
    randomness: Randomness
    now_ns: int


def seal_blocks(
    tx: Transaction,
    registered: RegisteredAgreement,
    period: Period,
    judged: JudgedPeriod,
    *,
    attestor: Attestor,
    randomness: Randomness,
    upto: int,
) -> int:
    """Seal the blocks below ``upto`` that are not sealed yet, each under a new salt; how many those are.

    Raises ``VersionConflict`` where somebody else sealed meanwhile.
    """
    agreement = registered.agreement
    seal_key = attestor.seal_key(agreement, period)
    stream = seal_stream(seal_key)
    sealed = sum(1 for _ in tx.events.stream(stream))
    if sealed >= upto:
        return 0
    ends_ns = block_ends_ns(agreement, period, upto)
    events = []
    for block in range(sealed, upto):
        within = _within(block)
        salt = _get_or_make(tx.secrets, _salt_name(seal_key, block), randomness)
        windows = judged.windows[within]
        payload = {
            "sla_id": registered.sla_id,
            "seal_key": str(seal_key),
            "block": block,
            "block_hash": str(attestor.seal_block(agreement, period, block, windows, salt)),
            "first_window": block * BLOCK_WINDOWS,
            "windows": len(windows),
            "inputs": list(judged.inputs_within(within)),
        }
        events.append(NewEvent("block_sealed", payload, occurred_at_ns=ends_ns[block]))
    tx.events.append(stream, events, expected_version=sealed)
    return len(events)


def seal_period(
    tx: Transaction,
    registered: RegisteredAgreement,
    period: Period,
    judged: JudgedPeriod,
    sealing: Sealing,
    *,
    version: int,
    reason: str | None = None,
) -> Seal:
    """Seal what a version of a statement is settled from, and have the collector sign the root.

    Blocks that were not sealed yet are sealed now; those whose windows count something else than what was sealed are
    replaced, for ``reason`` or, without one, for what came in since. The others stay. Raises ``VersionConflict`` where
    somebody else sealed meanwhile.
    """
    agreement, attestor = registered.agreement, sealing.attestor
    seal_key, blocks = attestor.seal_key(agreement, period), attestor.block_count(len(judged.windows))
    seal_blocks(tx, registered, period, judged, attestor=attestor, randomness=sealing.randomness, upto=blocks)
    totals = (_total_salt(seal_key, version),) if agreement.compensation.impact is not None else ()
    for name in (*_version_salts(seal_key, version), *totals):
        _get_or_make(tx.secrets, name, sealing.randomness)
    seals = seals_of(tx, seal_key, version)
    salts = [_get(tx.secrets, _salt_of(event)) for event in seals]
    seal = attestor.seal(agreement, period, judged.windows, salts)
    # A salt hides one content only: the hash under the old one tells whether there is another, and is told to nobody.
    changed = [
        event for event, block in zip(seals, seal.blocks, strict=True) if event.payload["block_hash"] != str(block)
    ]
    if changed:
        for event in changed:
            block = event.payload["block"]
            salts[block] = _get_or_make(tx.secrets, _resalted(seal_key, version, block), sealing.randomness)
        seal = attestor.seal(agreement, period, judged.windows, salts)
        replacing = [_replacement(event, seal, judged, sealing.now_ns, version, reason) for event in changed]
        stream = seal_stream(seal_key)
        tx.events.append(stream, replacing, expected_version=sum(1 for _ in tx.events.stream(stream)))
    _sign(tx, registered, seal, sealing)
    return seal


def _replacement(
    sealed: StoredEvent, seal: Seal, judged: JudgedPeriod, now_ns: int, version: int, reason: str | None
) -> NewEvent:
    before = sealed.payload
    inputs = judged.inputs_within(_within(before["block"]))
    payload = {
        **{name: before[name] for name in ("sla_id", "seal_key", "block", "first_window", "windows")},
        "block_hash": str(seal.blocks[before["block"]]),
        "inputs": list(inputs),
        "statement_version": version,
        "replaces": sealed.id,
        "reason": reason or _came_since(len(set(inputs).difference(before["inputs"]))),
    }
    return NewEvent("block_resealed", payload, occurred_at_ns=now_ns)


def _came_since(batches: int) -> str:
    """Why a block counts something else than what was sealed before its period was closed."""
    if batches:
        return f"after the block was sealed {batches} batch(es) with facts of its windows came in"
    return "after the block was sealed it was changed what counts in its windows: exclusions, or facts beside it"


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
    blocks = tuple(_get(tx.secrets, _salt_of(event)) for event in seals_of(tx, seal_key, version))
    total = _total_salt(seal_key, version) if issued["trace"].get("impact_amount") is not None else None
    return Salts(blocks, base, credit, None if total is None else _get(tx.secrets, total))


def collector_signature(signed: Sequence[StoredEvent], telemetry_root: str) -> StoredEvent | None:
    """The collector's signature over a root, among the events of a ``telemetry`` stream."""
    of_collector = (event for event in signed if event.type == "telemetry_signed")
    return next((event for event in of_collector if event.payload["telemetry_root"] == telemetry_root), None)


def _sign(tx: Transaction, registered: RegisteredAgreement, seal: Seal, sealing: Sealing) -> None:
    """Have the collector sign a root that it did not sign yet."""
    stream = telemetry_stream(seal.seal_key)
    signed = list(tx.events.stream(stream))
    if collector_signature(signed, str(seal.root)) is not None:
        return
    signature = sealing.collector.sign(seal.root)
    payload = {
        "sla_id": registered.sla_id,
        "seal_key": str(seal.seal_key),
        "telemetry_root": str(seal.root),
        "r8": {"x": str(signature.r8[0]), "y": str(signature.r8[1])},
        "s": str(signature.s),
    }
    signing = NewEvent("telemetry_signed", payload, occurred_at_ns=sealing.now_ns)
    tx.events.append(stream, [signing], expected_version=len(signed))


def _within(block: int) -> slice:
    return slice(block * BLOCK_WINDOWS, (block + 1) * BLOCK_WINDOWS)


def _salt_name(seal_key: int | str, block: int) -> str:
    return f"salt/{seal_key}/{block}"


def _version_salts(seal_key: int, version: int) -> tuple[str, str]:
    """Where the salts of base and credit of a statement's version are kept."""
    place = f"salt/{seal_key}" if version == 1 else f"salt/{seal_key}/v{version}"
    return f"{place}/base", f"{place}/credit"


def _total_salt(seal_key: int, version: int) -> str:
    """Where the salt of a credit is kept that incidents add to."""
    base, _ = _version_salts(seal_key, version)
    return base.removesuffix("base") + "total"


def _salt_of(event: StoredEvent) -> str:
    """Where the salt is kept that a block was sealed with."""
    seal_key, block = event.payload["seal_key"], event.payload["block"]
    version = event.payload.get("statement_version")
    return _salt_name(seal_key, block) if version is None else _resalted(seal_key, version, block)


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
