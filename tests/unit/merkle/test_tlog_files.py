"""What third parties download: paths, entry bundles and tlog-proofs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.errors import (
    BadInput,
    NoteInvalid,
    NoteUnverified,
    QuorumUnmet,
    TilePathInvalid,
    TlogProofInvalid,
    TreeDamaged,
    TreeProofInvalid,
)
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.merkle.cosignature import WitnessKey, WitnessPolicy
from ledger.merkle.entry_bundle import MAX_ENTRY_BYTES, decode_bundle, encode_bundle
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.proof import inclusion_proof
from ledger.merkle.tile import BundleId, TileId, is_covered, parse_log_path, parse_tile_path
from ledger.merkle.tlog_proof import MAX_PROOF_BYTES, TlogProof, parse_tlog_proof, verify_tlog_proof
from ledger.merkle.tree import grow

ORIGIN = "log.example/a"
LOG = NoteKey(ORIGIN, SigningKey(b"\x07" * 32))
ENTRIES = [b"entry %d" % number for number in range(11)]
GROWTH = grow(0, [leaf_hash(entry) for entry in ENTRIES], lambda _: {})
NOTE = sign_checkpoint(Checkpoint(ORIGIN, GROWTH.size, GROWTH.root), [LOG])
NOBODY = WitnessPolicy((), 0)


def proof_of(index: int) -> TlogProof:
    return TlogProof(index, inclusion_proof(index, GROWTH.size, lambda _: GROWTH.tiles), NOTE, ENTRIES[index])


def check(
    proof: TlogProof, entry: bytes, origin: str = ORIGIN, key: NoteKey = LOG, policy: WitnessPolicy = NOBODY
) -> None:
    verify_tlog_proof(proof, leaf_hash(entry), origin=origin, log_keys=[key.key], policy=policy, verify=verify)


# --- paths -------------------------------------------------------------------------------------


@given(st.integers(0, 10**9), st.integers(1, 256))
def test_every_bundle_has_one_path(index: int, width: int) -> None:
    bundle = BundleId(index, width)
    assert parse_log_path(bundle.path()) == bundle
    assert bundle.first == index * 256
    with pytest.raises(TilePathInvalid):
        parse_tile_path(bundle.path())


@pytest.mark.parametrize(
    "path",
    [
        "tile/entries/0",
        "tile/entries/0000",
        "tile/entries/x000/001",
        "tile/entries/1234",
        "tile/entries/001/067",
        "tile/entries/x001/x067",
        "tile/entries/000.p/0",
        "tile/entries/000.p/256",
        "tile/entries/000.p/01",
        "tile/entries/000.p",
        "tile/entries/000/",
        "tile/Entries/000",
        "tile/00/000",
        "tile/64/000",
        "tile/-1/000",
        "tile/entries/٠٠٠",
        "tile/entries/000\n",
        "/tile/0/000",
        "tile/0/../0/000",
        "tile/entries/" + "x999/" * 20 + "000",
    ],
)
def test_other_spellings_are_no_paths(path: str) -> None:
    with pytest.raises(TilePathInvalid):
        parse_log_path(path)


def test_what_a_tree_covers() -> None:
    for tile, size in ((TileId(0, 0, 70), 70), (TileId(0, 0), 256), (TileId(1, 0, 1), 256), (TileId(1, 0, 2), 513)):
        assert is_covered(tile, size)
        assert not is_covered(tile, min(size, tile.width << 8 * tile.level) - 1)
    assert is_covered(BundleId(1, 3), 259)
    assert not is_covered(BundleId(1, 4), 259)
    assert not is_covered(TileId(0, 0, 1), 0)


# --- entry bundles -----------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=300), max_size=256))
def test_a_bundle_gives_its_entries_back(entries: list[bytes]) -> None:
    assert decode_bundle(encode_bundle(entries)) == entries


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=20), st.data())
def test_a_bundle_that_is_cut_off_is_refused(entries: list[bytes], data: st.DataObject) -> None:
    bundle = encode_bundle(entries)
    ends = {sum(2 + len(entry) for entry in entries[:count]) for count in range(len(entries) + 1)}
    at = data.draw(st.integers(0, len(bundle)).filter(lambda at: at not in ends))
    with pytest.raises(BadInput):
        decode_bundle(bundle[:at])


def test_the_longest_entry_and_a_longer_one() -> None:
    longest = bytes(MAX_ENTRY_BYTES)
    assert decode_bundle(encode_bundle([longest])) == [longest]
    with pytest.raises(TreeDamaged):
        encode_bundle([longest + b"\0"])
    with pytest.raises(BadInput):
        decode_bundle(encode_bundle([b""] * 257))


# --- tlog-proof --------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(len(ENTRIES)))
def test_a_proof_survives_its_file_and_holds(index: int) -> None:
    proof = parse_tlog_proof(proof_of(index).to_bytes())
    assert proof == proof_of(index)
    check(proof, ENTRIES[index])


def test_a_proof_holds_for_nothing_else() -> None:
    proof = proof_of(5)
    other = NoteKey(ORIGIN, SigningKey(b"\x08" * 32))
    with pytest.raises(TreeProofInvalid):
        check(proof, b"never logged")
    with pytest.raises(TreeProofInvalid):
        check(replace(proof, index=4), ENTRIES[5])
    with pytest.raises(TreeProofInvalid):
        check(replace(proof, index=11), ENTRIES[5])
    with pytest.raises(TreeProofInvalid):
        check(replace(proof, path=proof.path[:-1]), ENTRIES[5])
    with pytest.raises(NoteUnverified):
        check(proof, ENTRIES[5], origin="log.example/b")
    with pytest.raises(NoteUnverified):
        check(proof, ENTRIES[5], key=other)
    grown = sign_checkpoint(Checkpoint(ORIGIN, 12, GROWTH.root), [other])
    with pytest.raises(NoteUnverified):
        check(replace(proof, checkpoint=grown), ENTRIES[5])
    with pytest.raises(NoteUnverified, match="false"):
        check(replace(proof, checkpoint=NOTE.replace(b"\n11\n", b"\n12\n")), ENTRIES[5])
    witness = WitnessKey("witness.example/w1", SigningKey(b"\x09" * 32).public_key)
    with pytest.raises(QuorumUnmet):
        check(proof, ENTRIES[5], policy=WitnessPolicy((witness,), 1))


def test_extra_data_is_not_trusted_by_anyone() -> None:
    check(replace(proof_of(5), extra=b"anything"), ENTRIES[5])


FILE = proof_of(5).to_bytes()


@pytest.mark.parametrize(
    "altered",
    [
        b"",
        FILE.replace(b"@v1", b"@v2"),
        FILE.replace(b"index 5", b"index 05"),
        FILE.replace(b"index 5", b"index +5"),
        FILE.replace(b"index 5", "index ٥".encode()),
        FILE.replace(b"index 5", b"index 99999999999999999999"),
        FILE.replace(b"index 5", b"index 9223372036854775807"),
        FILE.replace(b"extra ", b"extra  "),
        FILE.replace(b"index 5\n", b"index 5\nindex 5\n"),
        FILE.replace(b"\n", b"\r\n"),
        FILE.replace(b"=\n", b"\n"),
        FILE.partition(b"\n\n")[0] + b"\n",
        FILE.partition(b"\n\n")[0] + b"\n\n",
        FILE.rstrip(b"\n"),
        FILE.replace(b"index 5\n", b"index 5\n" + b"A" * 43 + b"=\n" * 1 + (b"A" * 43 + b"=\n") * 63),
        b"c2sp.org/tlog-proof@v1\nextra \nindex 0\n\nnote\n",
        FILE + b"x" * MAX_PROOF_BYTES,
    ],
)
def test_files_that_are_no_proofs(altered: bytes) -> None:
    with pytest.raises(TlogProofInvalid):
        parse_tlog_proof(altered)


def test_every_prefix_of_a_file_is_refused_or_does_not_hold() -> None:
    for at in range(len(FILE)):
        with pytest.raises((TlogProofInvalid, NoteInvalid)) as caught:
            check(parse_tlog_proof(FILE[:at]), ENTRIES[5])
        assert caught.value.message


@pytest.mark.parametrize(
    ("index", "path", "checkpoint", "extra"),
    [
        (-1, (), b"n\n", None),
        (0, (b"short",), b"n\n", None),
        (0, (), b"n", None),
        (0, (), b"\nn\n", None),
        (0, (), b"n\n", b""),
    ],
)
def test_values_that_no_file_holds(index: int, path: tuple[bytes, ...], checkpoint: bytes, extra: bytes | None) -> None:
    with pytest.raises(TlogProofInvalid):
        TlogProof(index, path, checkpoint, extra)
