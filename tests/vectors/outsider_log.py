"""The log and its signatures as ``outsider`` reads them: sections 11 and 13 of docs/attestation-format.md, the C2SP
specifications signed-note, tlog-checkpoint and tlog-cosignature that they name, and RFC 6962."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from itertools import count
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.vectors.outsider_shapes import fits, jcs, schema

FIELD = 2**255 - 19
SMALL_ORDER = {
    0,
    1,
    FIELD - 1,
    0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
    0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
}
LOG_KEY, WITNESS_KEY = 1, 4


class Key(NamedTuple):
    name: str
    id: bytes
    public: bytes


class Checkpoint(NamedTuple):
    """What a log signed: ``text`` are the signed bytes, ``others`` the lines (name, key id, signature) of others."""

    origin: str
    size: int
    root: bytes
    text: str
    others: list[tuple[str, bytes, bytes]]


def signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Ed25519 (RFC 8032), without keys of small order and without second spellings."""
    y = int.from_bytes(key, "little") & ((1 << 255) - 1)
    if len(key) != 32 or len(signature) != 64 or y >= FIELD or y in SMALL_ORDER:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _base64(text: str) -> bytes:
    data = binascii.a2b_base64(text, strict_mode=True)
    assert base64.b64encode(data).decode() == text, "base64 in a second spelling"
    return data


def key_of(vkey: str, kind: int) -> Key:
    name, key_id, encoded = vkey.split("+", 2)
    typed = _base64(encoded)
    assert name
    assert not re.search(r"[\s\x00-\x1f]", name)
    assert typed[0] == kind
    assert len(typed) == 33
    assert hashlib.sha256(name.encode() + b"\n" + typed).digest()[:4].hex() == key_id
    return Key(name, bytes.fromhex(key_id), typed[1:])


def opened(note: str, vkey: str) -> Checkpoint:
    """A checkpoint that its log's key signed; every line under that key must hold."""
    key = key_of(vkey, LOG_KEY)
    text, blank, below = note.rpartition("\n\n")
    assert blank
    assert below.endswith("\n")
    text += "\n"
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)
    lines = []
    for line in below[:-1].split("\n"):
        dash, name, encoded = line.split(" ")
        blob = _base64(encoded)
        assert dash == "—"
        assert name
        assert "+" not in name
        assert len(blob) > 4
        lines.append((name, blob[:4], blob[4:]))
    mine = [line for line in lines if line[:2] == (key.name, key.id)]
    assert mine, "the log did not sign"
    assert all(signed(key.public, text.encode(), line[2]) for line in mine)
    origin, size, root = text[:-1].split("\n")[:3]
    assert "" not in text[:-1].split("\n")
    assert origin == key.name
    assert re.fullmatch(r"0|[1-9][0-9]{0,18}", size, re.ASCII)
    found = Checkpoint(origin, int(size), _base64(root), text, [line for line in lines if line not in mine])
    assert len(found.root) == 32
    return found


def witnesses(found: Checkpoint, vkeys: list[str], quorum: int) -> None:
    """At least so many of these keys cosigned, and no line of theirs is false."""
    keys = [key_of(vkey, WITNESS_KEY) for vkey in vkeys]
    assert len({key.public for key in keys}) == len(keys) >= quorum
    cosigned = set()
    for name, key_id, blob in found.others:
        for key in keys:
            if (name, key_id) == (key.name, key.id):
                time = int.from_bytes(blob[:8], "big")
                assert 0 < time < 2**63
                assert signed(key.public, f"cosignature/v1\ntime {time}\n{found.text}".encode(), blob[8:])
                cosigned.add(key.public)
    assert len(cosigned) >= quorum, "too few witnesses"


def root_of(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """RFC 6962, section 2.1.1."""
    assert 0 <= index < size
    if size == 1:
        assert not path
        return leaf
    split = next(2**k for k in count() if 2 ** (k + 1) >= size)
    if index < split:
        left, right = root_of(leaf, index, split, path[:-1]), path[-1]
    else:
        left, right = path[-1], root_of(leaf, index - split, size - split, path[:-1])
    return hashlib.sha256(b"\1" + left + right).digest()


def require_entry(event: Any, found: Checkpoint) -> None:
    leaf = hashlib.sha256(b"\0" + jcs(event["header"])).digest()
    path = [bytes.fromhex(node) for node in event["inclusion"]]
    assert root_of(leaf, event["seq"], found.size, path) == found.root, "not in the log"


def require_logged(event: Any, found: Checkpoint, kind: str, stream: str, version: int) -> None:
    """Section 11: an event of this type at this place of a stream is in the log, with this payload."""
    header = event["header"]
    assert (header["type"], header["stream"], header["version"]) == (kind, stream, version)
    newest = NEWEST[kind]
    assert 1 <= header["schema"] <= newest
    assert fits(event["payload"], schema(f"events/{kind}.v{newest}.json"))
    salted = bytes.fromhex(event["salt"]) + jcs(event["payload"])
    commitment = hashlib.sha256(b"sla-ledger/payload/v1\n" + salted).hexdigest()
    assert header["payload_commitment"] == commitment, "another payload was logged"
    require_entry(event, found)


NEWEST = {
    "statement_issued": 2,
    "block_sealed": 1,
    "block_resealed": 2,
    "exclusion_recorded": 1,
    "agreement_terminated": 1,
}


def require_equivocation(document: Any, pinned: Any) -> None:
    """Section 13. ``pinned(vkey, size)`` says whether a key counts for a checkpoint of a size."""
    one, other = document["leaves"]
    place = [tuple(leaf["header"][name] for name in ("tenant", "stream", "version")) for leaf in (one, other)]
    assert place[0] == place[1]
    assert jcs(one["header"]) != jcs(other["header"])
    notes = [opened(leaf["checkpoint"], leaf["vkey"]) for leaf in (one, other)]
    assert notes[0].origin == notes[1].origin
    for leaf, note in zip((one, other), notes, strict=True):
        require_entry(leaf, note)
        assert pinned({"origin": note.origin, "vkey": leaf["vkey"]}, note.size)
