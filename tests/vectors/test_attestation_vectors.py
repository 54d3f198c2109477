"""docs/attestation-vectors.json, recomputed from its inputs alone: by the code, and by a second implementation."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from web3 import Web3

from ledger.anchor.abi import contract_build
from ledger.app.bundles.building import signing_message
from ledger.attest.checks import verification
from ledger.attest.commitments import statement, telemetry
from ledger.attest.commitments.model import PeriodClaim, evaluate
from ledger.attest.commitments.statement import Context, Signals, State, Summary
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.attest.commitments.terms import AttestedObjective, AttestedTerms, AttestedTier
from ledger.attest.crypto import babyjub
from ledger.attest.crypto.batch import Batch, batch_node, batch_root, log_id
from ledger.attest.crypto.evm_tx import keccak256
from ledger.attest.crypto.groth16 import check_proof
from ledger.attest.crypto.pair import OneProof, statement_name
from ledger.attest.crypto.poseidon import poseidon, sponge, tag
from ledger.attest.crypto.signing import SigningKey
from ledger.attest.crypto.signing import verify as ed25519_holds
from ledger.attest.crypto.verification_key import parse_verification_key
from ledger.domain.attested import BASE_ORDER, SCALAR_ORDER
from ledger.domain.money import Rounding
from ledger.domain.record.canonical import canonical_bytes, parse_json
from ledger.domain.record.events import payload_commitment
from ledger.domain.terms.agreement import Agreement
from ledger.errors import NotCanonical
from ledger.merkle.checkpoint import Checkpoint, open_checkpoint
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.note import parse_vkey
from ledger.merkle.verify import root_from_inclusion
from tests.vectors import attestation_reference as reference
from tests.vectors import make_attestation_vectors

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "attestation-vectors.json").read_text(encoding="utf-8")
VECTORS: dict[str, Any] = json.loads(TEXT)


def numbers(texts: list[str]) -> list[int]:
    return [int(text) for text in texts]


def section(name: str) -> Any:
    return VECTORS[name]


def test_the_file_is_what_the_example_bundles_give() -> None:
    assert make_attestation_vectors.render() == TEXT


def test_every_section_of_the_format_has_vectors() -> None:
    page = (ROOT / "docs" / "attestation-format.md").read_text(encoding="utf-8")
    chapters = [line.removeprefix("## ").partition(".")[0] for line in page.splitlines() if line.startswith("## ")]
    assert [name.partition(" ")[0] for name in VECTORS if name[0].isdigit()] == chapters


def test_conventions() -> None:
    given = section("1 conventions")
    assert int(given["r"]) == SCALAR_ORDER
    assert int(given["q"]) == BASE_ORDER
    for name, value in given["tags"].items():
        assert tag(name) == reference.tag(name) == int(value)
    assert keccak256(b"").hex() == reference.keccak(b"").hex() == given["keccak of the empty text"]
    for one in given["poseidon"]:
        assert poseidon(numbers(one["inputs"])) == int(one["hash"])
    for one in given["sponge"]:
        inputs = numbers(one["inputs"])
        assert sponge(tag(one["tag"]), inputs) == reference.h(one["tag"], inputs) == int(one["hash"])


def test_canonical_json() -> None:
    given = section("2 canonical JSON")
    for one in given["exact"]:
        assert canonical_bytes(one["value"]).hex() == reference.jcs(one["value"]).encode().hex() == one["utf8"]
    for text in given["refused"]:
        with pytest.raises(NotCanonical):
            parse_json(text.encode(), max_bytes=1000)


def test_agreement() -> None:
    given = section("3 agreement")
    document = given["document"]
    text = reference.jcs(document).encode()
    agreement = Agreement.from_document(document)
    assert agreement.canonical == text
    assert len(text) == given["canonical bytes"]
    assert agreement.doc_sha256.hex() == hashlib.sha256(text).hexdigest() == given["doc_sha256"]
    for name, seed in given["ed25519 seeds"].items():
        signature = given["signatures"][name]
        assert SigningKey(bytes.fromhex(seed)).sign(agreement.signing_message).hex() == signature
        assert reference.ed25519(seed, b"sla-ledger/agreement/v1\n" + text) == signature
        assert SigningKey(bytes.fromhex(seed)).public_key.hex() == document["parties"][name]["ed25519_public_key"]
    issuer, customer = (document["parties"][name]["evm_address"] for name in ("issuer", "customer"))
    nonce = document["nonce"]
    found = statement.sla_id(issuer, customer, bytes.fromhex(nonce[2:]))
    assert found == reference.sla_id(issuer, customer, nonce)
    assert "0x" + found.hex() == given["sla_id"]


def test_windows() -> None:
    for given in section("4 windows"):
        counts = WindowCounts(tuple(given["good"]), tuple(given["bad"]), given["observed"], given["excluded"])
        assert counts.word() == reference.word(given) == int(given["word"])


def test_seal_key() -> None:
    given = section("5 seal")["seal key"]
    found = telemetry.seal_key(
        bytes.fromhex(given["sla_id"][2:]),
        bytes.fromhex(given["doc_sha256"]),
        int(given["start_ns"]),
        int(given["end_ns"]),
        given["window_seconds"],
    )
    assert found == reference.seal_key(given) == int(given["seal_key"])


@pytest.mark.parametrize(("name", "block_count", "windows"), [("one block", 1, 24), ("seven blocks", 7, 30)])
def test_blocks_and_telemetry_root(name: str, block_count: int, windows: int) -> None:
    given = section("5 seal")[name]
    key, words, salts = int(given["seal_key"]), numbers(given["words"]), numbers(given["salts"])
    assert (len(salts), len(words)) == (block_count, windows)
    found = [
        telemetry.block_hash(key, index, words[25 * index : 25 * index + 25], salt) for index, salt in enumerate(salts)
    ]
    assert found == reference.blocks(key, words, salts) == numbers(given["blocks"])
    root = telemetry.telemetry_root(key, len(words), found)
    assert root == reference.h("telemetry", [key, len(words), *found]) == int(given["telemetry_root"])


def test_collector_signature() -> None:
    given = section("5 seal")["collector"]
    seed, root = bytes.fromhex(given["seed"]), int(given["telemetry_root"])
    key = babyjub.public_key(seed)
    assert key == (int(given["public_key"]["x"]), int(given["public_key"]["y"]))
    signature = babyjub.Signature((int(given["r8"]["x"]), int(given["r8"]["y"])), int(given["s"]))
    assert babyjub.sign(seed, root) == signature
    assert babyjub.verify(key, root, signature)


@pytest.mark.parametrize("given", section("6 terms"), ids=lambda given: given["name"])
def test_terms(given: dict[str, Any]) -> None:
    slots = [
        AttestedObjective(target, tuple(AttestedTier(*tier) for tier in zip(thresholds, bps, strict=True) if tier[0]))
        if used
        else None
        for used, target, thresholds, bps in zip(
            given["used"], given["target"], given["threshold"], given["bps"], strict=True
        )
    ]
    x, y = numbers(given["collector"])
    terms = AttestedTerms(
        doc_sha256=bytes.fromhex(given["doc_sha256"]),
        collector=(x, y),
        objectives=tuple(slots),
        cap=int(given["cap"]),
        minimum=int(given["minimum"]),
        floor_bps=given["floor_bps"],
        sum_capped=given["sum_capped"],
        rounding=Rounding[given["rounding"].upper()],
        credit_hidden=given["credit_hidden"],
        exact=given["exact"],
    )
    assert terms.flags == reference.flags(given) == given["flags"]
    assert terms.hash() == reference.terms_hash(given) == int(given["terms_hash"])


def test_every_flag_changes_the_terms() -> None:
    given = section("6 terms")
    assert {one["flags"] for one in given} >= {0b00000, 0b00010, 0b00100, 0b00101, 0b01100, 0b10100, 0b11101}
    assert len({one["terms_hash"] for one in given}) == len(given)


@pytest.mark.parametrize("given", section("8 signals")["incident credit"], ids=lambda given: given["name"])
def test_incident_credits(given: dict[str, Any]) -> None:
    """The values are the model's (make_attestation_vectors); here they are worked out a second time from the page."""
    credit, signals = reference.incident_signals(given)
    assert (str(credit), [str(value) for value in signals]) == (given["credit"], given["signals"])


@pytest.mark.parametrize("given", section("7 decisions"), ids=lambda given: given["name"])
def test_decisions(given: dict[str, Any]) -> None:
    assert reference.decide(given) == {name: given[name] for name in ("states", "bps", "amount_e4", "credit")}
    objectives = tuple(
        AttestedObjective(one["target"], tuple(AttestedTier(*tier) for tier in one["tiers"]))
        for one in given["objectives"]
    )
    terms = AttestedTerms(
        doc_sha256=bytes(32),
        collector=babyjub.BASE,
        objectives=objectives,
        cap=int(given["cap"]),
        minimum=int(given["minimum"]),
        sum_capped=given["sum_capped"],
        rounding=Rounding[given["rounding"].upper()],
    )
    windows = make_attestation_vectors.spread([(one["good"], one["bad"]) for one in given["objectives"]])
    fee = int(given["fee"])
    found = evaluate(PeriodClaim(terms, windows, 1, (1,), fee, base_salt=1, credit_salt=1, ctx=1))
    assert [int(result.state) for result in found.objectives] == given["states"]
    assert (found.bps, str(found.amount_e4), str(found.credit)) == (given["bps"], given["amount_e4"], given["credit"])


def test_signals() -> None:
    given = section("8 signals")
    for one in given["summary"]:
        states = tuple(State(state) for state in one["states"])
        found = Summary(states, one["windows"], one["observed"], one["excluded"], one["idle"])
        assert found.encode() == reference.summary(one) == int(one["summary"])
    base = given["base commitment"]
    key, fee, salt = int(base["seal_key"]), int(base["fee"]), int(base["salt"])
    expected = poseidon([reference.tag("base"), key, fee, salt])
    assert statement.base_commit(key, fee, salt) == expected == int(base["base_commit"])
    credit = given["credit commitment"]
    ctx, amount, salt = int(credit["ctx"]), int(credit["credit"]), int(credit["salt"])
    expected = poseidon([reference.tag("credit"), ctx, amount, salt])
    assert statement.credit_commit(ctx, amount, salt) == expected == int(credit["credit_commit"])


def test_the_signals_of_the_example_are_those_of_the_other_sections() -> None:
    assert section("8 signals")["signals"] == [
        section("8 signals")["summary"][0]["summary"],
        section("8 signals")["credit commitment"]["credit"],
        section("9 context")[0]["ctx"],
        section("5 seal")["one block"]["telemetry_root"],
        section("6 terms")[0]["terms_hash"],
        section("8 signals")["base commitment"]["base_commit"],
    ]


@pytest.mark.parametrize("given", section("9 context"), ids=lambda given: given["name"])
def test_contexts(given: dict[str, Any]) -> None:
    context = Context(
        chain_id=int(given["chain_id"]),
        registry=given["registry"],
        sla_id=bytes.fromhex(given["sla_id"][2:]),
        start_ns=int(given["start_ns"]),
        end_ns=int(given["end_ns"]),
        terms_version=given["terms_version"],
        statement_version=given["statement_version"],
        previous=int(given["prev_ctx"]),
    )
    assert context.value() == reference.ctx(given) == int(given["ctx"])


def test_a_restatement_names_what_it_replaces() -> None:
    first, again, _ = section("9 context")
    assert first["prev_ctx"] == "0"
    assert again["prev_ctx"] == first["ctx"]
    assert again["statement_version"] == first["statement_version"] + 1


def test_proof_key_and_leaf() -> None:
    given = section("10 proof")
    key, proof = parse_verification_key(given["verification_key"]), bytes.fromhex(given["proof"])
    signals = Signals(*numbers(given["signals"]))
    assert given["signals"] == section("8 signals")["signals"]
    circuit_id = key.circuit_id()
    assert circuit_id == reference.circuit_id(given["verification_key"])
    assert circuit_id.hex() == given["circuit_id"]
    assert signals.digest().hex() == reference.signals_hash(given["signals"]).hex() == given["signals_hash"]
    assert statement.proof_hash(proof).hex() == reference.keccak(proof).hex() == given["proof_hash"]
    leaf = statement_name(OneProof(circuit_id, signals.as_tuple(), proof)).leaf(signals.ctx)
    assert leaf == reference.leaf(given["signals"], proof, circuit_id)
    assert leaf.hex() == given["leaf"] == given["batch"]["leaves"][0]
    check_proof(key, signals.as_tuple(), proof)


def test_batch() -> None:
    given = section("10 proof")["batch"]
    leaves = [bytes.fromhex(leaf) for leaf in given["leaves"]]
    batch, levels = Batch.of(leaves), reference.batch_levels(leaves)
    assert batch.root.hex() == levels[-1][0].hex() == given["batch_root"]
    for leaf, path in zip(leaves, given["paths"], strict=True):
        siblings = [bytes.fromhex(sibling) for sibling in path]
        assert list(batch.path(leaf)) == reference.batch_path(levels, leaf) == siblings
        assert batch_root(leaf, siblings).hex() == given["batch_root"]
    origin, size, root = (given["checkpoint"][name] for name in ("origin", "size", "root"))
    assert log_id(origin).hex() == reference.keccak(text=origin).hex() == given["log_id"]
    node = batch_node(Checkpoint(origin, size, bytes.fromhex(root)), batch.root)
    assert node == reference.batch_node(origin, size, bytes.fromhex(root), levels[-1][0])
    assert node.hex() == given["batch_node"]
    contract = Web3().eth.contract(abi=contract_build("SlaAnchor").abi)
    arguments = [(log_id(origin), size, bytes.fromhex(root)), batch.root]
    assert contract.encode_abi("anchorBatch", args=arguments) == "0x" + given["call_data"]


def test_ledger_entry() -> None:
    given = section("11 ledger entry")
    payload, salt, header = given["payload"], given["salt"], given["header"]
    assert payload_commitment(payload, bytes.fromhex(salt)).hex() == given["commitment"]
    assert reference.commitment(payload, salt) == given["commitment"] == header["payload_commitment"]
    assert canonical_bytes(header).decode() == reference.jcs(header) == given["entry"]
    leaf = leaf_hash(given["entry"].encode())
    assert leaf.hex() == hashlib.sha256(b"\x00" + given["entry"].encode()).hexdigest() == given["leaf_hash"]
    path = [bytes.fromhex(node) for node in given["inclusion"]["path"]]
    seq, size, root = given["inclusion"]["seq"], given["checkpoint"]["size"], given["checkpoint"]["root"]
    assert root_from_inclusion(seq, size, leaf, path).hex() == reference.root(leaf, seq, size, path).hex() == root


def test_checkpoint() -> None:
    given = section("11 ledger entry")["checkpoint"]
    assert reference.checkpoint(given) == (given["note"], given["vkey"])
    opened = open_checkpoint(given["note"].encode(), given["origin"], [parse_vkey(given["vkey"])], ed25519_holds)
    assert opened.checkpoint == Checkpoint(given["origin"], given["size"], bytes.fromhex(given["root"]))


@pytest.mark.parametrize("given", section("12 bundle")["files"], ids=lambda given: given["file"])
def test_bundles(given: dict[str, Any]) -> None:
    data = (ROOT / given["file"]).read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (given["bytes"], given["sha256"])
    bundle = verification.read_bundle(data)
    assert reference.jcs(bundle).encode() == canonical_bytes(bundle) == data
    unsigned = {name: value for name, value in bundle.items() if name != "issuer_signature"}
    message = section("12 bundle")["signing prefix"].encode() + reference.jcs(unsigned).encode()
    assert signing_message(bundle) == message
    assert hashlib.sha256(message).hexdigest() == given["signing message sha256"]
    seed = section("3 agreement")["ed25519 seeds"]["issuer"]
    assert reference.ed25519(seed, message) == given["issuer_signature"] == bundle["issuer_signature"]


def test_two_entries_in_one_place_of_one_log() -> None:
    found, origin = section("13 equivocation"), section("11 ledger entry")["checkpoint"]["origin"]
    leaves = found["document"]["leaves"]
    assert hashlib.sha256(canonical_bytes(found["document"])).hexdigest() == found["sha256"]
    assert len({tuple(leaf["header"][name] for name in ("tenant", "stream", "version")) for leaf in leaves}) == 1
    assert len(set(found["leaf_hashes"])) == 2
    for leaf, expected in zip(leaves, found["leaf_hashes"], strict=True):
        entry = hashlib.sha256(b"\0" + canonical_bytes(leaf["header"])).digest()
        assert entry.hex() == expected
        opened = open_checkpoint(leaf["checkpoint"].encode(), origin, [parse_vkey(leaf["vkey"])], ed25519_holds)
        path = [bytes.fromhex(step) for step in leaf["inclusion"]]
        size, root = opened.checkpoint.size, opened.checkpoint.root
        assert reference.root(entry, leaf["seq"], size, path) == root
