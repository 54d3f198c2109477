"""docs/attestation-format.md a second time, straight from its text and with other libraries.

Slow and short on purpose: fractions instead of integer comparisons, eth_abi instead of our words, recursion instead of
tiles. Only the Poseidon permutation is shared; test_poseidon_vectors holds it against circomlib.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from eth_abi import encode
from eth_utils import keccak

from ledger.attest.crypto.poseidon import poseidon

ROUNDINGS = {"floor": 0, "half_up": 1, "half_even": 2}


def jcs(value: Any) -> str:
    """Section 2."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: list(memoryview(key.encode("utf-16-be")).cast("B")))
        return "{" + ",".join(f"{jcs(key)}:{jcs(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def tag(name: str) -> int:
    return int.from_bytes(hashlib.sha256(b"sla-ledger/v1/" + name.encode()).digest()[:31], "big")


def h(name: str, inputs: Sequence[int]) -> int:
    """H of section 1."""
    state, rest = tag(name), list(inputs)
    while rest:
        run, rest = rest[:15], rest[15:]
        state = poseidon([state] + run + [0] * (15 - len(run)))
    return state


def ed25519(seed: str, message: bytes) -> str:
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed)).sign(message).hex()


def sla_id(issuer: str, customer: str, nonce: str) -> bytes:
    """Section 3."""
    return keccak(encode(["address", "address", "bytes32"], [issuer, customer, bytes.fromhex(nonce[2:])]))


def word(window: dict[str, Any]) -> int:
    """Section 4."""
    counts = sum(good * 2 ** (56 * m) for m, good in enumerate(window["good"]))
    counts += sum(bad * 2 ** (56 * m + 28) for m, bad in enumerate(window["bad"]))
    return counts + window["observed"] * 2**224 + window["excluded"] * 2**225


def seal_key(given: dict[str, Any]) -> int:
    """Section 5."""
    types = ["bytes32", "bytes32", "bytes32", "uint64", "uint64", "uint32"]
    values = [
        keccak(text="sla-ledger/seal/v1"),
        bytes.fromhex(given["sla_id"][2:]),
        bytes.fromhex(given["doc_sha256"]),
        int(given["start_ns"]),
        int(given["end_ns"]),
        given["window_seconds"],
    ]
    return int.from_bytes(keccak(encode(types, values)), "big") >> 8


def blocks(key: int, words: Sequence[int], salts: Sequence[int]) -> list[int]:
    padded = [*words, *[0] * (25 * len(salts) - len(words))]
    return [h("block", [key, j, *padded[25 * j : 25 * j + 25], salt]) for j, salt in enumerate(salts)]


def flags(terms: dict[str, Any]) -> int:
    """Section 6."""
    return 1 * terms["sum_capped"] + 2 * ROUNDINGS[terms["rounding"]] + 8 * terms["credit_hidden"] + 16 * terms["exact"]


def terms_hash(terms: dict[str, Any]) -> int:
    inputs = [int(terms["doc_sha256"][:32], 16), int(terms["doc_sha256"][32:], 16), *map(int, terms["collector"])]
    inputs += [flags(terms), int(terms["cap"]), int(terms["minimum"]), terms["floor_bps"]]
    inputs += [*terms["used"], *terms["target"], *chain(*terms["threshold"]), *chain(*terms["bps"])]
    assert len(inputs) == 48
    return h("terms", inputs)


def decide(given: dict[str, Any]) -> dict[str, Any]:
    """Section 7, in fractions of money and of requests."""
    states, percentages = [], []
    for one in given["objectives"]:
        total = one["good"] + one["bad"]
        attained = Fraction(one["good"], total) if total else None
        if attained is None:
            states.append(1)
        else:
            states.append(2 if attained >= Fraction(one["target"], 10**9) else 3)
        missed = [bps for below, bps in one["tiers"] if attained is not None and attained < Fraction(below, 10**9)]
        percentages.append(missed[-1] if missed else 0)
    states += [0] * (4 - len(states))
    bps = min(sum(percentages), 10_000) if given["sum_capped"] else max(percentages)
    amount = min(Fraction(int(given["fee"]) * bps, 10_000), Fraction(int(given["cap"])))
    credit = 0
    if amount > int(given["minimum"]):
        credit = _rounded(amount, given["rounding"])
    return {"states": states, "bps": bps, "amount_e4": str(amount * 10_000), "credit": str(credit)}


def summary(given: dict[str, Any]) -> int:
    """Section 8."""
    states = sum(state * 4**m for m, state in enumerate(given["states"]))
    counts = ((given["idle"] * 1024 + given["excluded"]) * 1024 + given["observed"]) * 1024 + given["windows"]
    return counts * 256 + states


def incident_signals(given: dict[str, Any]) -> tuple[int, list[int]]:
    """Section 8, incident credits: the credit in fractions of money, and the signals."""
    incidents = [[int(value) for value in one] for one in given["incidents"]]
    terms, context = [int(value) for value in given["terms"]], int(given["ctx"])
    coefficient, price, tiers = int(given["coefficient"]), int(given["price"]), int(given["tier_amount"])
    impact = sum(good + bad for _, _, good, bad in incidents) * Fraction(coefficient, 10**9) * Fraction(price, 10**9)
    both = [Fraction(tiers, 10_000), impact]
    amount = min(sum(both, Fraction(0)) if given["sum_rules"] else max(both), Fraction(terms[5]))
    credit = _rounded(amount, given["rounding"]) if amount > terms[6] else 0
    words = [first + windows * 2**10 + good * 2**20 + bad * 2**58 for first, windows, good, bad in incidents]
    if len(incidents) > 64:
        (first, *_), rest = incidents[63], incidents[63:]
        windows, good, bad = (sum(each[at] for each in rest) for at in (1, 2, 3))
        words = [*words[:63], first + windows * 2**10 + good * 2**20 + bad * 2**58]
    head = [int(given["seal_key"]), coefficient, price, int(given["sum_rules"]), len(words)]
    shown = [credit, tiers]
    if given["committed"]:
        shown = [
            poseidon([tag("total"), context, credit, int(given["total_salt"])]),
            poseidon([tag("credit"), context, tiers, int(given["tier_salt"])]),
        ]
    counted = len(words) + 256 * sum(windows for _, windows, _, _ in incidents)
    root = h("incidents", [*head, *words, *[0] * (64 - len(words))])
    return credit, [counted, shown[0], context, shown[1], h("terms", terms), root]


def _rounded(amount: Fraction, mode: str) -> int:
    whole, rest = divmod(amount, 1)
    up = {
        "floor": False,
        "half_up": rest >= Fraction(1, 2),
        "half_even": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
    }
    return whole + up[mode]


def ctx(given: dict[str, Any]) -> int:
    """Section 9."""
    types = ["bytes32", "uint256", "address", "bytes32", "uint64", "uint64", "uint32", "uint32", "uint256"]
    values = [
        keccak(text="sla-ledger/ctx/v1"),
        int(given["chain_id"]),
        given["registry"],
        bytes.fromhex(given["sla_id"][2:]),
        int(given["start_ns"]),
        int(given["end_ns"]),
        given["terms_version"],
        given["statement_version"],
        int(given["prev_ctx"]),
    ]
    return int.from_bytes(keccak(encode(types, values)), "big") >> 8


def circuit_id(key: dict[str, Any]) -> bytes:
    """Section 10."""

    def g1(point: list[str]) -> list[int]:
        return [int(point[0]), int(point[1])]

    def g2(point: list[list[str]]) -> list[int]:
        (x0, x1), (y0, y1), _ = point
        return [int(x1), int(x0), int(y1), int(y0)]

    words = g1(key["vk_alpha_1"]) + g2(key["vk_beta_2"]) + g2(key["vk_gamma_2"]) + g2(key["vk_delta_2"])
    words += chain(*map(g1, key["IC"]))
    body = b"".join(value.to_bytes(32, "big") for value in words)
    return hashlib.sha256(b"sla-ledger/vk/v1" + key["nPublic"].to_bytes(4, "big") + body).digest()


def signals_hash(signals: Sequence[str]) -> bytes:
    return keccak(encode(["uint256[6]"], [[int(signal) for signal in signals]]))


def leaf(signals: Sequence[str], proof: bytes, circuit: bytes) -> bytes:
    types = ["bytes32", "uint256", "bytes32", "bytes32", "bytes32"]
    values = [keccak(text="sla-ledger/leaf/v1"), int(signals[2]), signals_hash(signals), keccak(proof), circuit]
    return keccak(keccak(encode(types, values)))


def batch_levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """The tree of a batch, lowest level first."""
    levels = [sorted(set(leaves))]
    while len(levels[-1]) > 1:
        below, level = levels[-1], []
        for left in range(0, len(below), 2):
            pair = sorted(below[left : left + 2])
            level.append(keccak(b"".join(pair)) if len(pair) == 2 else pair[0])
        levels.append(level)
    return levels


def batch_path(levels: list[list[bytes]], leaf: bytes) -> list[bytes]:
    place, path = levels[0].index(leaf), []
    for level in levels[:-1]:
        path += [node for n, node in enumerate(level) if n // 2 == place // 2 and n != place]
        place //= 2
    return path


def batch_node(origin: str, size: int, log_root: bytes, root: bytes) -> bytes:
    types = ["bytes32", "bytes32", "uint64", "bytes32", "bytes32"]
    return keccak(encode(types, [keccak(text="sla-ledger/batch/v1"), keccak(text=origin), size, log_root, root]))


def commitment(payload: Any, salt: str) -> str:
    """Section 11."""
    return hashlib.sha256(b"sla-ledger/payload/v1\n" + bytes.fromhex(salt) + jcs(payload).encode()).hexdigest()


def root(leaf_hash: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """The root an audit path leads to, by the recursion of RFC 6962, section 2.1.1."""
    if size == 1:
        assert not path
        return leaf_hash
    split = 1
    while split * 2 < size:
        split *= 2
    if index < split:
        left, right = root(leaf_hash, index, split, path[:-1]), path[-1]
    else:
        left, right = path[-1], root(leaf_hash, index - split, size - split, path[:-1])
    return hashlib.sha256(b"\x01" + left + right).digest()


def checkpoint(given: dict[str, Any]) -> tuple[str, str]:
    """The signed note and the verifier key (C2SP signed-note and tlog-checkpoint)."""
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(given["ed25519 seed"]))
    typed = b"\x01" + private.public_key().public_bytes_raw()
    key_id = hashlib.sha256(given["origin"].encode() + b"\n" + typed).digest()[:4]
    text = f"{given['origin']}\n{given['size']}\n{base64.b64encode(bytes.fromhex(given['root'])).decode()}\n"
    signature = base64.b64encode(key_id + private.sign(text.encode())).decode()
    note = f"{text}\n— {given['origin']} {signature}\n"
    return note, f"{given['origin']}+{key_id.hex()}+{base64.b64encode(typed).decode()}"
