"""The vectors beyond the committed bundles, worked out a second time by ``outsider`` from the page alone.

That our code gives them is what ``test_the_file_is_what_the_example_bundles_give`` says.
"""

from __future__ import annotations

import base64
import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.vectors import outsider_chain, outsider_log
from tests.vectors.outsider_credit import differences, fraction
from tests.vectors.outsider_hashes import batched, h, keccak, poseidon, signed_root, tag, words
from tests.vectors.outsider_shapes import fits, jcs, schema

ROOT = Path(__file__).resolve().parents[2]
VECTORS: dict[str, Any] = json.loads((ROOT / "docs" / "attestation-vectors.json").read_text(encoding="utf-8"))
SEAL, PROOF, ENTRY = VECTORS["5 seal"], VECTORS["10 proof"], VECTORS["11 ledger entry"]
INCIDENTS = VECTORS["8 signals"]["incident credit"]


def numbers(texts: list[str]) -> list[int]:
    return [int(text) for text in texts]


def test_the_probe_signs_the_root_that_the_collector_signs() -> None:
    for name in ("collector", "probe"):
        given = SEAL[name]
        key, r8 = ((int(given[part]["x"]), int(given[part]["y"])) for part in ("public_key", "r8"))
        assert signed_root(key, int(given["telemetry_root"]), r8, int(given["s"]))
        assert not signed_root(key, int(given["telemetry_root"]) + 1, r8, int(given["s"]))
    assert SEAL["probe"]["telemetry_root"] == SEAL["collector"]["telemetry_root"]
    assert SEAL["probe"]["public_key"] != SEAL["collector"]["public_key"]


def test_a_block_that_is_sealed_anew() -> None:
    given, before = SEAL["sealed anew"], SEAL["one block"]
    key, found = int(before["seal_key"]), numbers(given["words"])
    changed = [i for i, (old, new) in enumerate(zip(before["words"], given["words"], strict=True)) if old != new]
    assert changed == [3]
    assert found[3] - int(before["words"][3]) == 1 << 28
    block = h("block", [key, 0, *found, *[0] * (25 - len(found)), int(given["salt"])])
    assert (str(block), given["replaced_block"]) == (given["block"], before["blocks"][0])
    assert str(h("telemetry", [key, len(found), block])) == given["telemetry_root"]
    event = given["event"]
    assert event["payload"]["block_hash"] == given["block"]
    assert event["header"]["stream"] == given["stream"] == f"seal/{key}"
    assert event["header"]["version"] == len(before["blocks"])
    require_event(event, "block_resealed")


def require_event(event: Any, kind: str) -> None:
    salted = bytes.fromhex(event["salt"]) + jcs(event["payload"])
    assert event["header"]["type"] == kind
    assert fits(event["payload"], schema(f"events/{kind}.v{outsider_log.NEWEST[kind]}.json"))
    assert hashlib.sha256(b"sla-ledger/payload/v1\n" + salted).hexdigest() == event["commitment"]
    assert event["header"]["payload_commitment"] == event["commitment"]
    assert hashlib.sha256(b"\0" + jcs(event["header"])).hexdigest() == event["leaf_hash"]


@pytest.mark.parametrize("given", INCIDENTS, ids=lambda given: given["name"])
def test_incidents_step_by_step(given: dict[str, Any]) -> None:
    steps, incidents = given["steps"], [numbers(one) for one in given["incidents"]]
    placed, rest = incidents[:63], incidents[63:]
    placed += [[rest[0][0], *(sum(each[at] for each in rest) for at in (1, 2, 3))]] if rest else []
    made = [first + count * 2**10 + good * 2**20 + bad * 2**58 for first, count, good, bad in placed]
    assert [str(word) for word in made] == steps["words"]
    head = [int(given[name]) for name in ("seal_key", "coefficient", "price")]
    root = h("incidents", [*head, int(given["sum_rules"]), len(made), *made, *[0] * (64 - len(made))])
    assert str(root) == steps["incident_root"] == given["signals"][5]
    requests = sum(good + bad for _, _, good, bad in incidents)
    assert str(requests) == steps["requests"]
    impact = requests * Fraction(head[1], 10**9) * Fraction(head[2], 10**9)
    tiers = Fraction(int(given["tier_amount"]), 10**4)
    combined = tiers + impact if given["sum_rules"] else max(tiers, impact)
    capped = min(combined, Fraction(int(given["terms"][5])))
    assert [fraction(each) for each in (impact, combined, capped)] == [
        steps[name] for name in ("impact", "combined", "capped")
    ]
    context, credit = int(given["ctx"]), int(given["credit"])
    committed = [
        poseidon(tag("total"), context, credit, int(given["total_salt"])),
        poseidon(tag("credit"), context, int(given["tier_amount"]), int(given["tier_salt"])),
    ]
    assert [str(each) for each in committed] == [steps["total_commit"], steps["tier_commit"]]
    shown = committed if given["committed"] else [credit, int(given["tier_amount"])]
    assert [given["signals"][at] for at in (1, 3)] == [str(each) for each in shown]
    assert str(h("terms", numbers(given["terms"]))) == given["signals"][4]


def test_each_version_names_the_context_and_the_signals_of_the_one_before() -> None:
    place, proof = VECTORS["9 context"][0], bytes.fromhex(PROOF["proof"])
    previous, before, circuit = 0, bytes(32), bytes.fromhex(PROOF["circuit_id"])
    assert circuit == outsider_chain.circuit_id(PROOF["verification_key"])
    for number, given in enumerate(PROOF["versions"], 1):
        period = int(place["start_ns"]), int(place["end_ns"])
        head = keccak(b"sla-ledger/ctx/v1"), int(place["chain_id"]), place["registry"], place["sla_id"]
        ctx = int.from_bytes(keccak(words(*head, *period, 1, number, previous)), "big") >> 8
        assert (given["prev_ctx"], given["ctx"], given["signals"][2]) == (str(previous), str(ctx), str(ctx))
        assert given["prev_signals_hash"] == before.hex()
        call = words(place["sla_id"], *period, 1, number, previous, before, circuit, *numbers(given["signals"])) + proof
        assert given["call_data"] == (keccak(outsider_chain.RECORD.encode())[:4] + call).hex()
        before, previous = keccak(words(*numbers(given["signals"]))), ctx
        assert before.hex() == given["signals_hash"]


@pytest.mark.parametrize("given", [*PROOF["small batches"], PROOF["batch"]], ids=lambda given: len(given["leaves"]))
def test_batches(given: dict[str, Any]) -> None:
    log = PROOF["batch"]["checkpoint"]
    for leaf, path in zip(given["leaves"], given["paths"], strict=True):
        node = bytes.fromhex(leaf)
        for sibling in map(bytes.fromhex, path):
            node = keccak(min(node, sibling) + max(node, sibling))
        assert node.hex() == given["batch_root"]
    assert keccak(log["origin"].encode()).hex() == given["log_id"]
    hashes = bytes.fromhex(given["log_id"]), log["size"], bytes.fromhex(log["root"]), bytes.fromhex(given["batch_root"])
    assert keccak(words(keccak(b"sla-ledger/batch/v1"), *hashes)).hex() == given["batch_node"]
    assert given["leaves"] or given["batch_root"] == "00" * 32


def test_the_leaf_of_a_statement() -> None:
    signals = keccak(words(*numbers(PROOF["signals"])))
    body = words(
        keccak(b"sla-ledger/leaf/v1"),
        int(PROOF["signals"][2]),
        signals,
        keccak(bytes.fromhex(PROOF["proof"])),
        bytes.fromhex(PROOF["circuit_id"]),
    )
    assert keccak(keccak(body)).hex() == PROOF["leaf"]
    assert [batched(bytes.fromhex(PROOF["leaf"]), 32)] == [[bytes.fromhex(PROOF["batch"]["leaves"][0])]]


def test_what_names_a_statement_with_two_proofs() -> None:
    given, place = PROOF["two proofs"], VECTORS["9 context"][0]
    first, second = (bytes.fromhex(each) for each in (PROOF["circuit_id"], given["incident_circuit_id"]))
    proofs = [bytes.fromhex(each) for each in (PROOF["proof"], given["incident_proof"])]
    signals = [numbers(each) for each in (PROOF["signals"], given["incident_signals"])]
    hashes = keccak(words(*signals[0], *signals[1])), keccak(proofs[0] + proofs[1])
    pair = keccak(words(keccak(b"sla-ledger/circuit-pair/v1"), first, second))
    assert (pair.hex(), *(each.hex() for each in hashes)) == tuple(
        given[name] for name in ("circuit_id", "signals_hash", "proof_hash")
    )
    leaf = keccak(keccak(words(keccak(b"sla-ledger/leaf/v1"), signals[0][2], *hashes, pair)))
    assert leaf.hex() == given["leaf"]
    period = int(place["start_ns"]), int(place["end_ns"])
    body = words(place["sla_id"], *period, 1, 1, 0, bytes(32), first, *signals[0]) + proofs[0]
    body += words(second, *signals[1]) + proofs[1]
    statement = outsider_chain.RECORD.removeprefix("verifyAndRecord(").removesuffix(")")
    name = f"verifyAndRecordWithIncidents({statement},(bytes32,uint256[6],uint256[8]))"
    assert given["call_data"] == (keccak(name.encode())[:4] + body).hex()


@pytest.mark.parametrize(("at", "kind"), [(0, "statement_issued"), (1, "exclusion_recorded")])
def test_payloads_of_other_types_open_their_commitments(at: int, kind: str) -> None:
    require_event(ENTRY["other entries"][at], kind)


@pytest.mark.parametrize("given", ENTRY["differences"], ids=lambda given: given["name"])
def test_what_versions_say_of_their_differences(given: dict[str, Any]) -> None:
    found = differences(given["old"], given["new"], "USD")
    assert jcs(found) == jcs({name: given[name] for name in ("objective_deltas", "credit_delta")})


def test_a_cosignature_under_the_checkpoint() -> None:
    given, log = ENTRY["cosignature"], ENTRY["checkpoint"]
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(given["ed25519 seed"]))
    text = log["note"].partition("\n\n")[0] + "\n"
    message = f"cosignature/v1\ntime {given['time_s']}\n{text}".encode()
    assert base64.b64decode(given["message"]) == message
    key = outsider_log.key_of(given["vkey"], outsider_log.WITNESS_KEY)
    blob = key.id + given["time_s"].to_bytes(8, "big") + private.sign(message)
    assert given["line"] == f"— {key.name} {base64.b64encode(blob).decode()}\n"
    found = outsider_log.opened(log["note"] + given["line"], log["vkey"])
    outsider_log.witnesses(found, [given["vkey"]], 1)
    with pytest.raises(AssertionError):
        outsider_log.witnesses(found, [given["vkey"]], 2)


def test_a_notice() -> None:
    given, agreement = VECTORS["3 agreement"]["notice"], VECTORS["3 agreement"]
    message = b"sla-ledger/termination/v1\n" + jcs(given["document"])
    assert hashlib.sha256(message).hexdigest() == given["message sha256"]
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(agreement["ed25519 seeds"]["customer"]))
    assert private.sign(message).hex() == given["signatures"]["customer"]


def test_two_entries_in_one_place() -> None:
    document, log = VECTORS["13 equivocation"]["document"], ENTRY["checkpoint"]
    pinned = {"origin": log["origin"], "vkey": log["vkey"]}
    outsider_log.require_equivocation(document, lambda key, size: key == pinned)
    with pytest.raises(AssertionError):
        outsider_log.require_equivocation(document, lambda key, size: False)
    with pytest.raises(AssertionError):
        outsider_log.require_equivocation({"leaves": [document["leaves"][0]] * 2}, lambda key, size: True)
