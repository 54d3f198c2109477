"""A verifier that needs docs/attestation-format.md and nothing of this package: standard library, py_ecc, Ed25519.

It verifies bundles of the kind of bundle.json (daily periods in UTC, hourly windows, a public credit, first
version) and is as short as that allows. Where the page did not say enough to write it, the page was mended.
"""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import count
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from py_ecc.optimized_bn128 import FQ, FQ2, FQ12, add, b, b2, is_inf, is_on_curve, multiply, neg, pairing
from py_ecc.secp256k1.secp256k1 import ecdsa_raw_recover

from tests.vectors.outsider_hashes import U64, R, batched, h, jcs, keccak, poseidon, tag, words

Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583
G2_X = (
    10857046999023057135944570762232829481370756359578518086990519993285655852781,
    11559732032986387107991004021392285783925812861821192530917403151452391805634,
)


def signed(key: str, message: bytes, signature: bytes) -> None:
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, message)


# --- sections 3 to 9 --------------------------------------------------------------------------------


class Bundle:
    """Each method checks one step and raises where it does not hold."""

    def __init__(self, data: bytes) -> None:
        self.doc: Any = json.loads(data)
        assert data == jcs(self.doc), "not the exact bytes"
        self.agreement, self.issued = self.doc["agreement"], self.doc["statement"]["payload"]
        parties = self.agreement["parties"]
        self.keys = {name: party["ed25519_public_key"] for name, party in parties.items()}
        self.addresses = {name: party["evm_address"] for name, party in parties.items()}
        terms = jcs({name: self.agreement[name] for name in self.agreement if name != "signatures"})
        self.terms, self.doc_sha256 = terms, hashlib.sha256(terms).digest()
        self.sla_id = keccak(words(self.addresses["issuer"], self.addresses["customer"], self.agreement["nonce"]))
        day = datetime.fromisoformat(self.issued["period"].removesuffix("/P1D")).replace(tzinfo=UTC)
        self.start, self.end = (int((day + timedelta(days=n)).timestamp()) * 10**9 for n in (0, 1))
        seal = (keccak(b"sla-ledger/seal/v1"), self.sla_id, self.doc_sha256, self.start, self.end, 3600)
        self.seal_key = int.from_bytes(keccak(words(*seal)), "big") >> 8
        self.windows = 24
        self.signals = [int(signal) for signal in self.doc["proof"]["signals"]]
        assert len(self.signals) == 6
        assert all(0 <= signal < R for signal in self.signals)

    def verify(self) -> None:
        for step in (self.signatures, self.log, self.telemetry, self.context, self.verdict, self.proof, self.anchor):
            step()

    def signatures(self) -> None:
        rest = {name: self.doc[name] for name in self.doc if name != "issuer_signature"}
        signed(self.keys["issuer"], b"sla-ledger/bundle/v1\n" + jcs(rest), bytes.fromhex(self.doc["issuer_signature"]))
        for name, key in self.keys.items():
            signature = bytes.fromhex(self.agreement["signatures"][name])
            signed(key, b"sla-ledger/agreement/v1\n" + self.terms, signature)
        assert (self.issued["sla_id"], self.issued["doc_sha256"]) == ("0x" + self.sla_id.hex(), self.doc_sha256.hex())
        spelled = self.issued["start_ns"], self.issued["end_ns"], self.issued["windows"]
        assert spelled == (str(self.start), str(self.end), self.windows)

    def log(self) -> None:
        text, _, below = self.doc["log"]["checkpoint"].partition("\n\n")
        origin, size, root = text.split("\n")
        name, key_id, key = self.doc["log"]["vkey"].split("+", 2)
        typed = base64.b64decode(key)
        assert hashlib.sha256(name.encode() + b"\n" + typed).digest()[:4].hex() == key_id
        assert typed[0] == 1
        blob = base64.b64decode(below.removeprefix(f"— {name} ").split("\n")[0])
        assert origin == name
        assert blob[:4].hex() == key_id
        signed(typed[1:].hex(), text.encode() + b"\n", blob[4:])
        for event in (*self.doc["seals"], self.doc["statement"]):
            salted = bytes.fromhex(event["salt"]) + jcs(event["payload"])
            commitment = hashlib.sha256(b"sla-ledger/payload/v1\n" + salted).hexdigest()
            assert event["header"]["payload_commitment"] == commitment
            leaf = hashlib.sha256(b"\0" + jcs(event["header"])).digest()
            path = [bytes.fromhex(node) for node in event["inclusion"]]
            assert _root(leaf, event["seq"], int(size), path) == base64.b64decode(root)
        statement = self.doc["statement"]
        assert all(seal["seq"] < statement["seq"] for seal in self.doc["seals"])
        first = self.issued["period"].partition("/")[0]
        where = statement["header"]["stream"], statement["header"]["version"]
        assert where == (f"statement/0x{self.sla_id.hex()}/{first}", 0)

    def telemetry(self) -> None:
        sealed = self.doc["telemetry"]
        blocks = [int(block) for block in sealed["blocks"]]
        root = h("telemetry", [self.seal_key, self.windows, *blocks])
        assert self.issued["telemetry_root"] == sealed["root"] == str(root) == str(self.signals[3])
        for j, (seal, block) in enumerate(zip(self.doc["seals"], blocks, strict=True)):
            assert (seal["payload"]["block_hash"], seal["payload"]["block"]) == (str(block), j)
            assert (seal["header"]["stream"], seal["header"]["version"]) == (f"seal/{self.seal_key}", j)
        r8, key = (
            tuple(int(point[axis]) for axis in "xy")
            for point in (sealed["signature"]["r8"], self.agreement["collector"]["babyjubjub_public_key"])
        )
        s = int(sealed["signature"]["s"])
        assert s < SUBGROUP
        assert _on_curve(r8)
        assert _on_curve(key)
        assert key != (0, 1)
        assert _times(SUBGROUP, key) == (0, 1)
        challenge = poseidon(*r8, *key, root)
        assert _times(s, B8) == _plus(r8, _times(8 * challenge, key))

    def context(self) -> None:
        context = self.doc["context"]
        versions = self.issued["terms_version"], self.issued["statement_version"]
        where = (int(context["chain_id"]), context["registry"], self.sla_id, self.start, self.end)
        preimage = words(keccak(b"sla-ledger/ctx/v1"), *where, *versions, 0)
        assert self.signals[2] == int.from_bytes(keccak(preimage), "big") >> 8
        assert versions[1] == 1
        assert context["prev_ctx"] == "0"
        fee = _cents(self.agreement["compensation"]["base"])
        assert self.signals[5] == poseidon(tag("base"), self.seal_key, fee, int(self.doc["base"]["salt"]))
        assert self.signals[4] == h("terms", self.term_numbers())

    def term_numbers(self) -> list[int]:
        paid, objectives = self.agreement["compensation"], self.agreement["objectives"]
        (rule,) = paid["rules"]
        flags = (paid["tiers_combine"] == "sum") + 2 * ("floor", "half_up", "half_even").index(paid["rounding"])
        flags += 8 * (paid["credit_visibility"] == "committed")
        cap = min((_cents(value) for value in paid["caps"].values()), default=U64 - 1)
        key = self.agreement["collector"]["babyjubjub_public_key"]
        numbers = [int.from_bytes(self.doc_sha256[:16], "big"), int.from_bytes(self.doc_sha256[16:], "big")]
        numbers += [int(key["x"]), int(key["y"]), flags, cap, _cents(paid["minimum"])]
        numbers.append(_scaled(self.agreement["coverage_floor"], 100))
        numbers += _padded([1] * len(objectives)) + _padded([_ppb(each["target"]) for each in objectives])
        tiers = [rule["tiers"].get(each["id"], []) for each in objectives] + [[]] * (4 - len(objectives))
        for row in tiers:
            numbers += _padded([_ppb(tier["below"]) for tier in row])
        for row in tiers:
            numbers += _padded([_scaled(tier["credit_percent"], 100) for tier in row])
        return numbers

    def verdict(self) -> None:
        """Sections 7 and 8, from the totals that the statement states."""
        paid, states, best = self.agreement["compensation"], [0] * 4, 0
        (rule,) = paid["rules"]
        for m, (terms, found) in enumerate(zip(self.agreement["objectives"], self.issued["objectives"], strict=True)):
            good, total = found["good"], found["valid"]
            states[m] = 1 if not total else 2 if good * 10**9 >= total * _ppb(terms["target"]) else 3
            assert found["state"] == ("unused", "no_data", "met", "breached")[states[m]]
            missed = [tier for tier in rule["tiers"].get(terms["id"], []) if good * 10**9 < total * _ppb(tier["below"])]
            best = max([best, *(_scaled(tier["credit_percent"], 100) for tier in missed[-1:])])
        assert paid["tiers_combine"] == "best"
        assert paid["rounding"] == "half_even"
        cap = min((_cents(value) for value in paid["caps"].values()), default=U64 - 1)
        amount = min(_cents(paid["base"]) * best, cap * 10_000)
        credit = round(Fraction(amount, 10_000)) if amount > _cents(paid["minimum"]) * 10_000 else 0
        assert self.issued["credit"]["minor_units"] == str(credit) == str(self.signals[1])
        counts = [self.issued[name] for name in ("windows", "observed", "excluded", "idle")]
        summary = sum(state << 2 * m for m, state in enumerate(states))
        assert self.signals[0] == summary + sum(value << 8 + 10 * i for i, value in enumerate(counts))
        floor = _scaled(self.agreement["coverage_floor"], 100)
        assert counts[1] * 10_000 >= (counts[0] - counts[2]) * floor

    def proof(self) -> None:
        """Section 10."""
        key, data = self.doc["proof"]["verification_key"], bytes.fromhex(self.doc["proof"]["proof"])
        coordinates = [int.from_bytes(bytes(word), "big") for word in batched(data, 32)]
        assert len(data) == 256
        assert max(coordinates) < Q
        ax, ay, bx1, bx0, by1, by0, cx, cy = coordinates
        a, c = _g1((ax, ay)), _g1((cx, cy))
        alpha, *ic = (_g1(tuple(map(int, point[:2]))) for point in (key["vk_alpha_1"], *key["IC"]))
        beta, gamma, delta = (_g2(key[f"vk_{name}_2"]) for name in ("beta", "gamma", "delta"))
        x_of = [tuple(map(int, key[f"vk_{name}_2"][0])) for name in ("gamma", "delta")]
        assert x_of[1] not in (x_of[0], G2_X), "anyone can forge under this key"
        total = ic[0]
        for signal, point in zip(self.signals, ic[1:], strict=True):
            total = add(total, multiply(point, signal))
        product = pairing(_g2([[bx0, bx1], [by0, by1]]), neg(a), final_exponentiate=False)
        for right, left in ((beta, alpha), (gamma, total), (delta, c)):
            product *= pairing(right, left, final_exponentiate=False)
        assert product ** ((Q**12 - 1) // R) == FQ12.one()
        assert self.doc["proof"]["manifest"]["circuit_id"] == self.circuit_id.hex()

    @property
    def circuit_id(self) -> bytes:
        key = self.doc["proof"]["verification_key"]
        numbers = [*key["vk_alpha_1"][:2]]
        for name in ("beta", "gamma", "delta"):
            (x0, x1), (y0, y1), _ = key[f"vk_{name}_2"]
            numbers += [x1, x0, y1, y0]
        numbers += [coordinate for point in key["IC"] for coordinate in point[:2]]
        body = words(*map(int, numbers))
        return hashlib.sha256(b"sla-ledger/vk/v1" + key["nPublic"].to_bytes(4, "big") + body).digest()

    def anchor(self) -> None:
        raw = bytes.fromhex(self.doc["anchor"]["raw_transaction"])
        assert self.doc["anchor"]["tx_hash"] == "0x" + keccak(raw).hex()
        assert raw[0] == 2
        fields, end = _rlp(raw, 1)
        assert end == len(raw)
        assert len(fields) == 12
        chain, to, value, data = (fields[i] for i in (0, 5, 6, 7))
        context = self.doc["context"]
        assert int.from_bytes(chain, "big") == int(context["chain_id"])
        assert value == b""
        assert "0x" + to.hex() == context["registry"].lower()
        signature = (
            "verifyAndRecord((bytes32,uint64,uint64,uint32,uint32,uint256,bytes32,bytes32,uint256[6],uint256[8]))"
        )
        call = (self.sla_id, self.start, self.end, self.issued["terms_version"], 1, 0, bytes(32), self.circuit_id)
        proof = bytes.fromhex(self.doc["proof"]["proof"])
        assert data == keccak(signature.encode())[:4] + words(*call, *self.signals) + proof
        unsigned = b"\x02" + _rlp_list(raw, 9)
        v, r, s = (int.from_bytes(field, "big") for field in fields[9:])
        x, y = ecdsa_raw_recover(keccak(unsigned), (27 + v, r, s))
        sender = "0x" + keccak(words(int(x), int(y)))[12:].hex()
        assert sender in [address.lower() for address in self.addresses.values()]


# --- arithmetic ------------------------------------------------------------------------------------


def _scaled(text: str, by: int) -> int:
    value = Fraction(text) * by
    assert value.denominator == 1
    return int(value)


def _cents(text: str) -> int:
    return _scaled(text, 100)


def _ppb(percent: str) -> int:
    return _scaled(percent, 10**7)


def _padded(values: list[int]) -> list[int]:
    return values + [0] * (4 - len(values))


def _root(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """RFC 6962, section 2.1.1."""
    if size == 1:
        assert not path
        return leaf
    split = next(2**k for k in count() if 2 ** (k + 1) >= size)
    if index < split:
        left, right = _root(leaf, index, split, path[:-1]), path[-1]
    else:
        left, right = path[-1], _root(leaf, index - split, size - split, path[:-1])
    return hashlib.sha256(b"\1" + left + right).digest()


def _g1(point: Any) -> Any:
    made = FQ(point[0]), FQ(point[1]), FQ(1)
    assert max(point) < Q
    assert is_on_curve(made, b)
    return made


def _g2(point: Any) -> Any:
    (x0, x1), (y0, y1) = ([int(c) for c in pair] for pair in point[:2])
    made = FQ2([x0, x1]), FQ2([y0, y1]), FQ2.one()
    assert max(x0, x1, y0, y1) < Q
    assert is_on_curve(made, b2)
    assert is_inf(multiply(made, R))
    return made


SUBGROUP = 2736030358979909402780800718157159386076813972158567259200215660948447373041
B8 = (
    5299619240641551281634865583518297030282874472190772894086521144482721001553,
    16950150798460657717958625567821834550301663161624707787222815936182638968203,
)


def _on_curve(point: Any) -> bool:
    x, y = point
    return (168700 * x * x + y * y - 1 - 168696 * x * x * y * y) % R == 0 and max(point) < R


def _plus(p: Any, q: Any) -> Any:
    (x1, y1), (x2, y2) = p, q
    t = 168696 * x1 * x2 * y1 * y2
    return (x1 * y2 + y1 * x2) * pow(1 + t, -1, R) % R, (y1 * y2 - 168700 * x1 * x2) * pow(1 - t, -1, R) % R


def _times(n: int, point: Any) -> Any:
    total = (0, 1)
    for bit in f"{n:b}":
        total = _plus(total, total)
        total = _plus(total, point) if bit == "1" else total
    return total


def _span(data: bytes, at: int) -> tuple[bool, int, int]:
    """Whether an item is a list, and where its content begins and ends (RLP)."""
    first = data[at]
    if first < 0x80:
        return False, at, at + 1
    base = 0xC0 if first >= 0xC0 else 0x80
    begin, length = at + 1, first - base
    if length > 55:
        begin = at + 1 + length - 55
        length = int.from_bytes(data[at + 1 : begin], "big")
    return base == 0xC0, begin, begin + length


def _rlp(data: bytes, at: int) -> tuple[Any, int]:
    is_list, begin, end = _span(data, at)
    if not is_list:
        return data[begin:end], end
    items = []
    while begin < end:
        item, begin = _rlp(data, begin)
        items.append(item)
    return items, end


def _rlp_list(raw: bytes, items: int) -> bytes:
    """The RLP list of the first items of the list in a raw transaction."""
    _, begin, _ = _span(raw, 1)
    end = begin
    for _ in range(items):
        end = _span(raw, end)[2]
    body = raw[begin:end]
    length = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return (bytes([0xC0 + len(body)]) if len(body) <= 55 else bytes([0xF7 + len(length)]) + length) + body
