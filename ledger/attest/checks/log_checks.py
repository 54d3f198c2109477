"""Checks of a bundle against its log: the signed checkpoint, the events below it, and the order in which they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.attest.checks.case import Case, bundle_events, require, require_same
from ledger.attest.crypto import signing
from ledger.domain.credits.restatement import differences
from ledger.domain.events.event_types import EVENT_TYPES
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import payload_commitment
from ledger.domain.record.naming import seal_stream, statement_id, statement_stream
from ledger.merkle.checkpoint import Checkpoint, OpenedCheckpoint, open_checkpoint
from ledger.merkle.cosignature import WitnessPolicy, parse_witness_vkey, require_quorum
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.note import parse_vkey
from ledger.merkle.verify import verify_inclusion


def log(case: Case) -> str:
    checkpoint = signed_checkpoint(case)
    return f"checkpoint of {checkpoint.origin} at size {checkpoint.size} is signed"


def inclusion(case: Case) -> str:
    checkpoint, issued = signed_checkpoint(case), case.issued
    version = issued["statement_version"]
    name = statement_id("0x" + case.sla_id.hex(), case.period.first, version)
    require(issued["statement_id"] == name, f"the statement should be called {name}")
    stream = statement_stream("0x" + case.sla_id.hex(), case.period.first)
    require_logged(case.bundle["statement"], checkpoint, "statement_issued", stream, version - 1)
    header = case.bundle["statement"]["header"]
    over = int(header["recorded_at_ns"]) >= case.period.interval.end_ns
    require(over, "the statement was recorded before its period was over")
    _require_one_tenant(case, header["tenant"])
    for index, seal in enumerate(case.bundle["seals"]):
        require(seal["seq"] < case.bundle["statement"]["seq"], f"block {index} was sealed after the statement")
        _require_sealed(case, seal, index, checkpoint)
        _require_in_turn(case, seal, index)
    return f"statement and {len(case.bundle['seals'])} seal(s) are in the log, of tenant {header['tenant']}"


def _require_one_tenant(case: Case, tenant: str) -> None:
    """A stream is one of a tenant: events of another would leave room for a second one with the same name."""
    for event in bundle_events(case.bundle):
        found = event["header"]["tenant"]
        require(found == tenant, f"event {event['seq']} is of tenant {found}, the statement of {tenant}")


def restatement(case: Case) -> str:
    """All versions before this one are in the log, and it says truly what it replaces and by how much it differs."""
    issued, checkpoint = case.issued, signed_checkpoint(case)
    first = issued["statement_version"] == 1
    for name in ("restates", "reason", "objective_deltas", "credit_delta"):
        require((name in issued) != first, f"exactly a restatement has {name}")
    require(("previous" in case.bundle) != first, "exactly a restatement comes with the versions before it")
    if first:
        return "it is the first version"
    stream, before = statement_stream("0x" + case.sla_id.hex(), case.period.first), -1
    events = case.bundle["previous"]
    for version, payload in enumerate(case.earlier, 1):
        event = events[version - 1]
        require(before < event["seq"] < case.bundle["statement"]["seq"], f"version {version} is not logged in its turn")
        before = event["seq"]
        require_logged(event, checkpoint, "statement_issued", stream, version - 1)
        name = statement_id("0x" + case.sla_id.hex(), case.period.first, version)
        same = {member: issued[member] for member in ("sla_id", "doc_sha256", "terms_version", "period")}
        expected = {**same, "statement_version": version, "statement_id": name}
        found = {member: payload[member] for member in expected}
        require(found == expected, f"the event given for version {version} is of another statement")
    replaced = events[-1]
    named = {"statement_id": replaced["payload"]["statement_id"], "event_id": replaced["header"]["id"]}
    said = {name: issued["restates"][name] for name in named}
    require(said == named, "it restates another statement than the version before it")
    deltas = differences(replaced["payload"], issued, case.agreement.compensation.currency)
    for name, value in deltas.items():
        require_same(issued[name], value, f"{name} is not the difference from the version before it")
    return f"it replaces {named['statement_id']}, which is in the log, and differs from it as it says"


def witness_quorum(case: Case, witnesses: Mapping[str, Any]) -> str:
    """``witnesses`` is the trust file's member. No clock is asked: a bundle must hold for years."""
    policy = WitnessPolicy(tuple(parse_witness_vkey(vkey) for vkey in witnesses["vkeys"]), witnesses["quorum"])
    note = _opened(case).note
    found = require_quorum(note.text, note.unverified, policy, signing.verify)
    names = ", ".join(cosignature.key.name for cosignature in found)
    return f"{len(found)} of {len(policy.keys)} trusted witnesses cosigned the checkpoint ({names})"


def _require_sealed(case: Case, seal: Mapping[str, Any], block: int, checkpoint: Checkpoint) -> None:
    """The event that seals a block: the first one stands at the block's place in the stream, others after all those."""
    payload, stream, blocks = seal["payload"], seal_stream(case.seal_key), len(case.bundle["seals"])
    if "statement_version" not in payload:
        require_logged(seal, checkpoint, "block_sealed", stream, block)
        return
    version, place = payload["statement_version"], seal["header"]["version"]
    require(version <= case.issued["statement_version"], f"block {block} was sealed anew for a later version")
    require(place >= blocks, f"block {block} was sealed anew at place {place} of its stream, before all were sealed")
    require_logged(seal, checkpoint, "block_resealed", stream, place)


def _require_in_turn(case: Case, seal: Mapping[str, Any], block: int) -> None:
    """A block is sealed before the first version that counts by it, and replaced behind the version before that one."""
    versions = [*case.bundle.get("previous", ()), case.bundle["statement"]]
    first = seal["payload"].get("statement_version")
    if first is None:
        # What was sealed first is what the first version with a root names.
        first = next(at for at, each in enumerate(versions, 1) if each["payload"]["telemetry_root"] is not None)
    elif first > 1:
        behind = versions[first - 2]["seq"] < seal["seq"]
        require(behind, f"block {block} was sealed anew for version {first} before version {first - 1} was issued")
    before = seal["seq"] < versions[first - 1]["seq"]
    require(before, f"block {block} was sealed after version {first}, which is said to count by it")


def signed_checkpoint(case: Case) -> Checkpoint:
    return _opened(case).checkpoint


def _opened(case: Case) -> OpenedCheckpoint:
    vkey = parse_vkey(case.bundle["log"]["vkey"])
    raw = case.bundle["log"]["checkpoint"].encode()
    return open_checkpoint(raw, vkey.name, [vkey], signing.verify)


def require_logged(
    event: Mapping[str, Any], checkpoint: Checkpoint, event_type: str, stream: str, version: int
) -> None:
    header, seq = event["header"], event["seq"]
    newest = EVENT_TYPES[event_type].schema
    known = header["type"] == event_type and 1 <= header["schema"] <= newest
    require(known, f"event {seq} is not a {event_type} of a schema from 1 to {newest}")
    require(header["stream"] == stream, f"event {seq} is in the stream {header['stream']}, not {stream}")
    require(header["version"] == version, f"event {seq} is version {header['version']} of its stream, not {version}")
    EVENT_TYPES[event_type].payload.check(event["payload"], "payload")
    commitment = payload_commitment(event["payload"], bytes.fromhex(event["salt"])).hex()
    require(header["payload_commitment"] == commitment, f"the payload of event {seq} is not the one in the log")
    path = [bytes.fromhex(node) for node in event["inclusion"]]
    verify_inclusion(seq, checkpoint.size, leaf_hash(canonical_bytes(header)), path, checkpoint.root)
