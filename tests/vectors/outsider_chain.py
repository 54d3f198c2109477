"""Proof, key and anchoring transaction as ``outsider`` checks them: section 10 of docs/attestation-format.md, the
recursive length prefix of the Ethereum yellow paper, EIP-2, 55, 155, 1559, 2930 and 7702."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from py_ecc.optimized_bn128 import FQ, FQ2, FQ12, add, b, b2, is_inf, is_on_curve, multiply, neg, pairing
from py_ecc.secp256k1.secp256k1 import ecdsa_raw_recover

from tests.vectors.outsider_hashes import R, batched, keccak, words

Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583
G2_X = (
    10857046999023057135944570762232829481370756359578518086990519993285655852781,
    11559732032986387107991004021392285783925812861821192530917403151452391805634,
)
CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
PUBLISH = "anchorBatch((bytes32,uint64,bytes32),bytes32)"
STATEMENT = "(bytes32,uint64,uint64,uint32,uint32,uint256,bytes32,bytes32,uint256[6],uint256[8])"
RECORD = f"verifyAndRecord({STATEMENT})"
PAIR = f"verifyAndRecordWithIncidents({STATEMENT},(bytes32,uint256[6],uint256[8]))"


# --- proof and key ---


Proof = tuple[Any, Any, Any]
TOGETHER: set[Any] = set()
"""Claims that were found to hold together with others."""


def require_proof(key: Any, signals: list[int], data: bytes) -> None:
    """Section 10: a Groth16 proof of 256 bytes under a key that is not degenerate."""
    claim = _frozen(key), tuple(signals), _proof(data)
    assert len(signals) == 6
    assert all(0 <= signal < R for signal in signals)
    assert claim in TOGETHER or holds(*claim)


def require_proofs(key: Any, claims: list[tuple[list[int], bytes]], numbers: list[int]) -> None:
    """Section 12, many proofs: the same of several proofs under one key, by random numbers."""
    frozen, product, ones, total = _frozen(key), FQ12.one(), None, None
    alpha, beta, gamma, delta, ic = _points(frozen)
    for (signals, data), number in zip(claims, numbers, strict=True):
        assert all(0 <= signal < R for signal in signals)
        a, b_, c = _proof(data)
        product *= pairing(_g2(b_), neg(multiply(_g1(a), number)), final_exponentiate=False)
        public, rest = multiply(_sum(ic, signals), number), multiply(_g1(c), number)
        ones, total = (public, rest) if ones is None or total is None else (add(ones, public), add(total, rest))
    for right, left in ((beta, multiply(alpha, sum(numbers))), (gamma, ones), (delta, total)):
        product *= pairing(right, left, final_exponentiate=False)
    assert product ** ((Q**12 - 1) // R) == FQ12.one()
    TOGETHER.update((frozen, tuple(signals), _proof(data)) for signals, data in claims)


@cache
def holds(key: Any, signals: tuple[int, ...], proof: Proof) -> bool:
    alpha, beta, gamma, delta, ic = _points(key)
    a, b_, c = proof
    product = pairing(_g2(b_), neg(_g1(a)), final_exponentiate=False)
    for right, left in ((beta, alpha), (gamma, _sum(ic, signals)), (delta, _g1(c))):
        product *= pairing(right, left, final_exponentiate=False)
    return bool(product ** ((Q**12 - 1) // R) == FQ12.one())


@cache
def _points(key: Any) -> Any:
    """alpha, beta, gamma, delta and the points of IC."""
    parts = dict(key)
    alpha, *ic = (_g1(_affine1(point)) for point in (parts["vk_alpha_1"], *parts["IC"]))
    beta, gamma, delta = (_g2(_affine2(parts[f"vk_{name}_2"])) for name in ("beta", "gamma", "delta"))
    x_of = [_affine2(parts[f"vk_{name}_2"])[0] for name in ("gamma", "delta")]
    assert x_of[1] not in (x_of[0], G2_X), "anyone can forge under this key"
    return alpha, beta, gamma, delta, ic


def _sum(ic: Any, signals: Sequence[int]) -> Any:
    total = ic[0]
    for signal, point in zip(signals, ic[1:], strict=True):
        total = add(total, multiply(point, signal))
    return total


def _proof(data: bytes) -> Proof:
    assert len(data) == 256
    ax, ay, bx1, bx0, by1, by0, cx, cy = (int.from_bytes(bytes(word), "big") for word in batched(data, 32))
    return (ax, ay), ((bx0, bx1), (by0, by1)), (cx, cy)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((name, _frozen(value[name])) for name in sorted(value))
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def leaf(proofs: Sequence[Any]) -> bytes:
    """Section 10: a statement as a leaf of a batch; of two proofs the values bind both."""
    signals = [int(signal) for proof in proofs for signal in proof["signals"]]
    circuits = [circuit_id(proof["verification_key"]) for proof in proofs]
    circuit = circuits[0] if len(circuits) == 1 else keccak(words(keccak(b"sla-ledger/circuit-pair/v1"), *circuits))
    hashes = keccak(words(*signals)), keccak(b"".join(bytes.fromhex(proof["proof"]) for proof in proofs)), circuit
    return keccak(keccak(words(keccak(b"sla-ledger/leaf/v1"), signals[2], *hashes)))


def recorded(head: bytes, proofs: Sequence[Any]) -> bytes:
    """Section 10: the call data that records a statement with one proof or with two."""
    call = PAIR if len(proofs) > 1 else RECORD
    body = b"".join(
        words(circuit_id(proof["verification_key"]), *map(int, proof["signals"])) + bytes.fromhex(proof["proof"])
        for proof in proofs
    )
    return keccak(call.encode())[:4] + head + body


def batch_root(leaf: bytes, siblings: list[str]) -> bytes:
    for sibling in siblings:
        other = bytes.fromhex(sibling[2:])
        leaf = keccak(min(leaf, other) + max(leaf, other))
    return leaf


def circuit_id(key: Any) -> bytes:
    numbers = [*_affine1(key["vk_alpha_1"])]
    for name in ("beta", "gamma", "delta"):
        (x0, x1), (y0, y1) = _affine2(key[f"vk_{name}_2"])
        numbers += [x1, x0, y1, y0]
    numbers += [coordinate for point in key["IC"] for coordinate in _affine1(point)]
    body = words(*numbers)
    return hashlib.sha256(b"sla-ledger/vk/v1" + key["nPublic"].to_bytes(4, "big") + body).digest()


def _affine1(point: Any) -> Any:
    assert point[2] == "1"
    return int(point[0]), int(point[1])


def _affine2(point: Any) -> Any:
    assert list(point[2]) == ["1", "0"]
    return (int(point[0][0]), int(point[0][1])), (int(point[1][0]), int(point[1][1]))


def _g1(point: Any) -> Any:
    assert max(point) < Q
    made = FQ(point[0]), FQ(point[1]), FQ(1)
    assert is_on_curve(made, b)
    return made


@cache
def _g2(point: Any) -> Any:
    (x0, x1), (y0, y1) = point
    assert max(x0, x1, y0, y1) < Q
    made = FQ2([x0, x1]), FQ2([y0, y1]), FQ2.one()
    assert is_on_curve(made, b2)
    assert is_inf(multiply(made, R))
    return made


# --- transaction ---


def eip55(address: bytes) -> str:
    digits = address.hex()
    mask = keccak(digits.encode()).hex()
    return "0x" + "".join(c.upper() if int(m, 16) > 7 else c for c, m in zip(digits, mask, strict=False))


def is_address(text: str) -> bool:
    return eip55(bytes.fromhex(text[2:])) == text


def sent(raw: bytes) -> tuple[str, str, int, bytes]:
    """Sender, target, chain and call data of a signed transaction in its one spelling; it carries no value."""
    assert len(raw) <= 131_072
    kind = raw[:1] if raw[0] < 0xC0 else b""
    fields, ends = _fields(raw, len(kind))
    # How many fields, and where the one before the recipient is.
    count, gas = {b"": (9, 2), b"\x01": (11, 3), b"\x02": (12, 4), b"\x04": (13, 4)}[kind]
    assert len(fields) == count
    *_, value, parity, r, s = (number(fields[i]) for i in (*range(gas + 1), gas + 2, -3, -2, -1))
    to, data, lists = fields[gas + 1], fields[gas + 3], fields[gas + 4 : -3]
    assert isinstance(to, bytes)
    assert isinstance(data, bytes)
    assert all(isinstance(each, list) for each in lists)
    for address, keys in lists[0] if lists else []:
        assert len(address) == 20
        assert all(isinstance(key, bytes) and len(key) == 32 for key in keys)
    for chain, address, *numbers in lists[1] if len(lists) > 1 else []:
        assert len(address) == 20
        assert len([number(each) for each in (chain, *numbers)]) == 5
    chain, parity = (number(fields[0]), parity) if kind else divmod(parity - 35, 2)
    assert chain >= 0
    assert len(to) == 20
    assert value == 0
    assert parity < 2
    assert 0 < r < CURVE_ORDER
    assert 0 < s <= CURVE_ORDER // 2
    body = raw[ends[0] : ends[-4]] + (b"" if kind else _number_spelled(chain) + b"\x80\x80")
    length = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    head = bytes([0xC0 + len(body)]) if len(body) <= 55 else bytes([0xF7 + len(length)]) + length
    x, y = ecdsa_raw_recover(keccak(kind + head + body), (27 + parity, r, s))
    return eip55(keccak(words(int(x), int(y)))[12:]), eip55(to), chain, data


def number(item: Any) -> int:
    assert isinstance(item, bytes)
    assert len(item) <= 32
    assert item[:1] != b"\0"
    return int.from_bytes(item, "big")


def _number_spelled(value: int) -> bytes:
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return digits if len(digits) == 1 and value < 0x80 else bytes([0x80 + len(digits)]) + digits


def _fields(raw: bytes, begin: int) -> tuple[list[Any], list[int]]:
    """The fields of the outermost list, and where each begins; the last number is the end of all."""
    is_list, at, end = _span(raw, begin, len(raw))
    assert is_list
    assert end == len(raw)
    fields, ends = [], [at]
    while at < end:
        item, at = _item(raw, at, end)
        fields.append(item)
        ends.append(at)
    return fields, ends


def _item(data: bytes, at: int, limit: int) -> tuple[Any, int]:
    is_list, begin, end = _span(data, at, limit)
    if not is_list:
        return data[begin:end], end
    items = []
    while begin < end:
        item, begin = _item(data, begin, end)
        items.append(item)
    return items, end


def _span(data: bytes, at: int, limit: int) -> tuple[bool, int, int]:
    """Whether an item is a list, and where its content begins and ends; its length has one spelling."""
    first = data[at]
    if first < 0x80:
        return False, at, at + 1
    base = 0xC0 if first >= 0xC0 else 0x80
    begin, length = at + 1, first - base
    if length > 55:
        begin = at + 1 + length - 55
        spelled = data[at + 1 : begin]
        length = int.from_bytes(spelled, "big")
        assert begin <= limit
        assert spelled[0] > 0
        assert length > 55
    assert begin + length <= limit
    assert not (base == 0x80 and length == 1 and data[begin] < 0x80)
    return base == 0xC0, begin, begin + length
