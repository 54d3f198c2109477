"""Outside vectors for the tree: RFC 6962 constants, proofs (most must be refused), and a real tiled log."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.crypto.signing import verify
from ledger.errors import TreeProofInvalid
from ledger.merkle.checkpoint import open_checkpoint
from ledger.merkle.hasher import EMPTY_ROOT, leaf_hash, node_hash, perfect_root
from ledger.merkle.note import parse_vkey
from ledger.merkle.proof import consistency_proof, inclusion_proof
from ledger.merkle.subtree import (
    covering_subtrees,
    is_subtree,
    subtree_consistency_proof,
    subtree_hash,
    subtree_inclusion_proof,
    verify_subtree_consistency,
    verify_subtree_inclusion,
)
from ledger.merkle.tile import TileId, parse_tile_path
from ledger.merkle.tree import Frontier, grow, tree_root
from ledger.merkle.verify import verify_consistency, verify_inclusion


@pytest.fixture(scope="module")
def merkle(sla_fixtures: Path) -> Path:
    return sla_fixtures / "ledger" / "transparency-dev_merkle"


@pytest.fixture(scope="module")
def constants(merkle: Path) -> Any:
    return json.loads((merkle / "rfc6962_constants.json").read_text())


def cases(folder: Path) -> list[tuple[str, Any]]:
    return [(str(file.relative_to(folder)), json.loads(file.read_text())) for file in sorted(folder.rglob("*.json"))]


def steps(case: Any) -> list[bytes]:
    return [b64decode(step) for step in case["proof"] or []]


def test_every_inclusion_vector(merkle: Path) -> None:
    verdicts = {}
    found = cases(merkle / "testdata" / "inclusion")
    for name, case in found:
        leaf, root = b64decode(case["leafHash"]), b64decode(case["root"])
        try:
            verify_inclusion(case["leafIdx"], case["treeSize"], leaf, steps(case), root)
            verdicts[name] = False
        except TreeProofInvalid:
            verdicts[name] = True
    assert verdicts == {name: case["wantErr"] for name, case in found}
    assert (len(verdicts), sum(verdicts.values())) == (98, 92)


def test_every_consistency_vector(merkle: Path) -> None:
    verdicts = {}
    found = cases(merkle / "testdata" / "consistency")
    for name, case in found:
        old_root, new_root = b64decode(case["root1"]), b64decode(case["root2"])
        try:
            verify_consistency(case["size1"], case["size2"], old_root, new_root, steps(case))
            verdicts[name] = False
        except TreeProofInvalid:
            verdicts[name] = True
    assert verdicts == {name: case["wantErr"] for name, case in found}
    assert (len(verdicts), sum(verdicts.values())) == (98, 92)


def test_the_happy_paths_are_the_proofs_made_here(merkle: Path, constants: Any) -> None:
    leaves = [leaf_hash(bytes.fromhex(entry)) for entry in constants["leaf_inputs_hex"]]
    tiles = grow(0, leaves, lambda _wanted: {}).tiles
    # Tiles only grow: the one of 8 leaves answers for every smaller width.
    widest = tiles[TileId(0, 0, 8)]

    def read(wanted: Any) -> dict[TileId, bytes]:
        return dict.fromkeys(wanted, widest)

    made = 0
    for _, case in cases(merkle / "testdata" / "inclusion"):
        if case["desc"] == "happy path":
            assert list(inclusion_proof(case["leafIdx"], case["treeSize"], read)) == steps(case)
            made += 1
    for _, case in cases(merkle / "testdata" / "consistency"):
        if case["desc"] == "happy path":
            assert list(consistency_proof(case["size1"], case["size2"], read)) == steps(case)
            made += 1
    assert made == 10


def test_the_hashes_of_the_rfc_6962_tree(constants: Any) -> None:
    leaves = [leaf_hash(bytes.fromhex(entry)) for entry in constants["leaf_inputs_hex"]]
    for height, row in enumerate(constants["node_hashes_hex"]):
        for index, node in enumerate(row):
            first = index << height
            assert perfect_root(b"".join(leaves[first : first + (1 << height)])).hex() == node
    for size, root in enumerate(constants["root_hashes_hex_by_size"]):
        assert Frontier().extend(leaves[:size]).root().hex() == root


def test_the_hasher_cases(constants: Any) -> None:
    hasher = constants["hasher"]
    assert EMPTY_ROOT.hex() == hasher["empty_root"]
    assert leaf_hash(b"").hex() == hasher["leaf_of_empty"]
    assert leaf_hash(b"L123456").hex() == hasher["leaf_of_L123456"]
    assert node_hash(b"N123", b"N456").hex() == hasher["node_of_N123_N456"]


# --- a 15-entry log written by another implementation ----------------------------------------------


def entries(bundle: bytes) -> list[bytes]:
    """The entries of a tlog-tiles bundle: each after its big-endian 16-bit length."""
    found = []
    while bundle:
        (length,) = struct.unpack_from(">H", bundle)
        found.append(bundle[2 : 2 + length])
        bundle = bundle[2 + length :]
    return found


def test_a_tessera_log_is_the_log_made_here(sla_fixtures: Path) -> None:
    tessera = sla_fixtures / "ledger" / "transparency-dev_tessera"
    log = tessera / "testdata" / "log"
    log_key = parse_vkey((tessera / "log.vkey").read_text().strip())
    tiles: dict[TileId, bytes] = {}

    def read(_wanted: Any) -> dict[TileId, bytes]:
        return tiles

    for size in range(16):
        raw = (log / f"checkpoint.{size}").read_bytes()
        opened = open_checkpoint(raw, "example.com/log/testdata", [log_key], verify)
        assert opened.checkpoint.size == size
        if size:
            bundle = entries((log / "tile" / "entries" / "000.p" / str(size)).read_bytes())
            growth = grow(size - 1, [leaf_hash(bundle[-1])], read)
            assert {tile.path(): data for tile, data in growth.tiles.items()} == {
                f"tile/0/000.p/{size}": (log / "tile" / "0" / "000.p" / str(size)).read_bytes()
            }
            assert growth.root == opened.checkpoint.root
            tiles.update(growth.tiles)
    assert (log / "checkpoint").read_bytes() == (log / "checkpoint.15").read_bytes()


def test_a_tessera_log_serves_proofs_for_every_pair_of_sizes(sla_fixtures: Path) -> None:
    tessera = sla_fixtures / "ledger" / "transparency-dev_tessera"
    log = tessera / "testdata" / "log"
    log_key = parse_vkey((tessera / "log.vkey").read_text().strip())

    def read(wanted: Any) -> dict[TileId, bytes]:
        return {tile: (log / tile.path()).read_bytes() for tile in wanted}

    def root(size: int) -> bytes:
        raw = (log / f"checkpoint.{size}").read_bytes()
        return open_checkpoint(raw, "example.com/log/testdata", [log_key], verify).checkpoint.root

    leaves = [leaf_hash(entry) for entry in entries((log / "tile/entries/000.p/15").read_bytes())]
    for size in range(1, 16):
        assert tree_root(size, read) == root(size)
        for index in range(size):
            verify_inclusion(index, size, leaves[index], inclusion_proof(index, size, read), root(size))
            old_size = index + 1
            verify_consistency(old_size, size, root(old_size), root(size), consistency_proof(old_size, size, read))


def test_the_tiles_of_a_tessera_log_have_paths_that_parse(sla_fixtures: Path) -> None:
    log = sla_fixtures / "ledger" / "transparency-dev_tessera" / "testdata" / "log"
    files = [file for file in (log / "tile" / "0").rglob("*") if file.is_file()]
    assert len(files) == 15
    for file in files:
        tile = parse_tile_path(file.relative_to(log).as_posix())
        assert file.stat().st_size == tile.width * 32


# --- subtrees (draft-ietf-plants-merkle-tree-certs) -------------------------------------------------


def test_every_subtree_inclusion_vector(merkle: Path) -> None:
    verdicts = {}
    found = cases(merkle / "testdata" / "subtreeinclusion")
    for name, case in found:
        leaf, root = b64decode(case["leafHash"]), b64decode(case["root"])
        try:
            verify_subtree_inclusion(case["leafIdx"], case["start"], case["end"], leaf, steps(case), root)
            verdicts[name] = False
        except TreeProofInvalid:
            verdicts[name] = True
    assert verdicts == {name: case["wantErr"] for name, case in found}
    assert (len(verdicts), sum(verdicts.values())) == (204, 192)


def test_every_subtree_consistency_vector(merkle: Path) -> None:
    verdicts = {}
    found = cases(merkle / "testdata" / "subtreeconsistency")
    for name, case in found:
        part, whole = b64decode(case["root1"]), b64decode(case["root2"])
        try:
            verify_subtree_consistency(case["start"], case["end"], case["size"], part, whole, steps(case))
            verdicts[name] = False
        except TreeProofInvalid:
            verdicts[name] = True
    assert verdicts == {name: case["wantErr"] for name, case in found}
    assert (len(verdicts), sum(verdicts.values())) == (118, 106)


@pytest.mark.slow
def test_the_accumulated_subtree_values(merkle: Path) -> None:
    """Every output of every subtree algorithm over all trees up to 130 leaves, in one hash each."""
    expected = json.loads((merkle / "subtree_accumulated.json").read_text())
    top = expected["max_size"]
    leaves = [leaf_hash(bytes([value])) for value in range(top)]
    tiles = grow(0, leaves, lambda _wanted: {}).tiles
    widest = tiles[TileId(0, 0, top)]

    def read(wanted: Any) -> dict[TileId, bytes]:
        return dict.fromkeys(wanted, widest)

    runs = [(start, end) for end in range(top + 1) for start in range(end + 1)]
    subtrees = [run for run in runs if is_subtree(*run)]

    def digest(lines: Iterator[str]) -> str:
        return sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()

    def line(head: str, path: tuple[bytes, ...]) -> str:
        return " ".join([head, *(step.hex() for step in path)])

    assert digest(f"[{a}, {b}) {subtree_hash(a, b, read).hex()}" for a, b in subtrees) == expected["subtree_hash"]
    assert (
        digest(
            line(f"{index} [{a}, {b})", subtree_inclusion_proof(index, a, b, read))
            for a, b in subtrees
            for index in range(a, b)
        )
        == expected["subtree_inclusion"]
    )
    assert (
        digest(
            line(f"[{a}, {b}) {size}", subtree_consistency_proof(a, b, size, read))
            for size in range(top + 1)
            for a, b in subtrees
            if b <= size
        )
        == expected["subtree_consistency"]
    )
    covering = (" ".join(f"[{a}, {b})" for a, b in covering_subtrees(*run)) for run in runs)
    assert digest(covering) == expected["subtree_covering"]
