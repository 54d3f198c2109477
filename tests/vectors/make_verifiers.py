"""Write verifiers.json: what every Groth16 verifier of this project must say, over real proofs and lies.

``python -m tests.vectors.make_verifiers`` writes the same bytes each time: real proofs come from the committed
groth16.json and example bundles, everything else from seeds. ``alone`` names the libraries that by themselves say
something else than ``holds``; what stands before each of them in this project does not.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from py_ecc.optimized_bn128 import G1, add, multiply, normalize

from ledger.attest.crypto.groth16 import Proof, parse_proof
from ledger.domain.attested import BASE_ORDER as Q
from ledger.domain.attested import SCALAR_ORDER as R
from tests.circuits.curve_tricks import point_outside_the_subgroup, rerandomised
from tests.contracts.trapdoor import Trapdoor

HERE = Path(__file__).parent
FILE = HERE / "verifiers.json"
Document = dict[str, Any]

# --- keys ----------------------------------------------------------------------------------------

_COMMITTED = json.loads((HERE / "groth16.json").read_text())
_DAYS = [json.loads((HERE / f"{name}.json").read_text())["proof"] for name in ("bundle", "bundle_next_day")]
OWN = Trapdoor("a sound key")
OTHER = Trapdoor("another sound key")
GAMMA = Trapdoor("no contribution", delta_is_gamma=True)
GENERATOR = Trapdoor("an unfinished ceremony", delta_is_generator=True)


def _negated(key: Document, member: str) -> Document:
    x, (y0, y1), one = key[member]
    return key | {member: [x, [str(Q - int(y0)), str(Q - int(y1))], one]}


def _with_ic(key: Document, change: Any) -> Document:
    points = copy.deepcopy(key["IC"])
    return key | {"IC": change(points)}


_STRAY = [[str(c) for c in coordinate] for coordinate in point_outside_the_subgroup()] + [["1", "0"]]
_SOUND = OWN.verification_key
KEYS: dict[str, Document] = {
    "groth16.json": _COMMITTED["verification_key"],
    "example bundles": _DAYS[0]["verification_key"],
    "own": _SOUND,
    "other": OTHER.verification_key,
    "delta is gamma": GAMMA.verification_key,
    "delta is minus gamma": _negated(GAMMA.verification_key, "vk_delta_2"),
    "delta is the generator": GENERATOR.verification_key,
    "delta is minus the generator": _negated(GENERATOR.verification_key, "vk_delta_2"),
    "an IC missing": _with_ic(_SOUND, lambda ic: ic[:-1]),
    "an IC more": _with_ic(_SOUND, lambda ic: [*ic, ic[-1]]),
    "an IC at infinity": _with_ic(_SOUND, lambda ic: [*ic[:-1], ["0", "1", "0"]]),
    "an IC of zeros": _with_ic(_SOUND, lambda ic: [*ic[:-1], ["0", "0", "1"]]),
    "an IC off the curve": _with_ic(_SOUND, lambda ic: [*ic[:-1], ["1", "3", "1"]]),
    "an IC plus q": _with_ic(_SOUND, lambda ic: [*ic[:-1], [str(int(ic[-1][0]) + Q), *ic[-1][1:]]]),
    "two IC swapped": _with_ic(_SOUND, lambda ic: [ic[0], ic[2], ic[1], *ic[3:]]),
    "alpha off the curve": _SOUND | {"vk_alpha_1": ["1", "3", "1"]},
    "beta outside the subgroup": _SOUND | {"vk_beta_2": _STRAY},
    "gamma outside the subgroup": _SOUND | {"vk_gamma_2": _STRAY},
    "delta outside the subgroup": _SOUND | {"vk_delta_2": _STRAY},
    "gamma at infinity": _SOUND | {"vk_gamma_2": [["0", "0"], ["1", "0"], ["0", "0"]]},
    "delta at infinity": _SOUND | {"vk_delta_2": [["0", "0"], ["1", "0"], ["0", "0"]]},
    "five signals": _with_ic(_SOUND, lambda ic: ic[:-1]) | {"nPublic": 5},
}


# --- questions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A key by its name, signals and proof bytes, and whether the proof holds."""

    name: str
    key: str
    signals: tuple[int, ...]
    proof: bytes
    holds: bool = False


SIGNALS = (0x1818AA, 5, 2**247 + 11, R - 5, 7, 0)
_HONEST = parse_proof(OWN.forge(SIGNALS))
PROOF = _HONEST.encode()
_lie = partial(Question, key="own", signals=SIGNALS, proof=PROOF)


def _words(proof: bytes) -> list[int]:
    return [int.from_bytes(proof[at : at + 32], "big") for at in range(0, len(proof), 32)]


def _bytes(words: list[int]) -> bytes:
    return b"".join(word.to_bytes(32, "big") for word in words)


def _replaced(at: int, *new: int) -> bytes:
    words = _words(PROOF)
    words[at : at + len(new)] = new
    return _bytes(words)


def _signal(at: int, value: int) -> tuple[int, ...]:
    return (*SIGNALS[:at], value, *SIGNALS[at + 1 :])


def real_proofs() -> Iterator[Question]:
    """Proofs of the circuit, and others of the same signals that anyone makes of them."""
    committed = tuple(map(int, _COMMITTED["signals"])), bytes.fromhex(_COMMITTED["proof"])
    days = [(tuple(map(int, day["signals"])), bytes.fromhex(day["proof"])) for day in _DAYS]
    yield Question("a real proof", "groth16.json", *committed, True)
    for name, day in zip(("the first day", "the next day"), days, strict=True):
        yield Question(f"the proof of {name}", "example bundles", *day, True)
    for factor in (2, R - 1, 0xC0FFEE):
        other = rerandomised(parse_proof(committed[1]), factor).encode()
        yield Question(f"a real proof re-randomised by {factor % 2**64}", "groth16.json", committed[0], other, True)
    yield Question("signals of one day, proof of the next", "example bundles", days[0][0], days[1][1])
    moved = (*days[0][0][:2], days[1][0][2], *days[0][0][3:])
    yield Question("the next day's ctx with this day's proof", "example bundles", moved, days[0][1])
    yield Question("that, re-randomised", "example bundles", moved, rerandomised(parse_proof(days[0][1]), 77).encode())
    yield Question("a real proof under another circuit's key", "example bundles", *committed)
    yield Question("a real proof under a key of the asker's", "own", *committed)


def proofs_by_trapdoor() -> Iterator[Question]:
    """To a verifier these are proofs like others: they hold because who made the key made them."""
    yield _lie("a proof", holds=True)
    for seed in ("1", "2", "3"):
        yield _lie(f"a proof with other randomness {seed}", proof=OWN.forge(SIGNALS, randomness=seed), holds=True)
    for name, signals in {
        "of zeros": (0,) * 6,
        "of the largest signals": (R - 1,) * 6,
        "of one": (1, 0, 0, 0, 0, 0),
    }.items():
        yield _lie(f"a proof {name}", signals=signals, proof=OWN.forge(signals), holds=True)
    a, b, c = _HONEST.a, _HONEST.b, _HONEST.c
    minus = Proof((a[0], Q - a[1]), (b[0], ((Q - b[1][0]) % Q, (Q - b[1][1]) % Q)), c)
    yield _lie("A and B both negated", proof=minus.encode(), holds=True)


def wrong_signals() -> Iterator[Question]:
    for at in range(6):
        yield _lie(f"signal {at} plus one", signals=_signal(at, (SIGNALS[at] + 1) % R))
        yield _lie(f"signal {at} plus r", signals=_signal(at, SIGNALS[at] + R))
    yield _lie("signal 5 is r", signals=_signal(5, R))
    yield _lie("signal 5 is 2^256 - 1", signals=_signal(5, 2**256 - 1))
    yield _lie("signal 5 plus 5 r", signals=_signal(5, 5 * R))
    yield _lie("signal 5 beyond 256 bits", signals=_signal(5, 2**256 * R))
    yield _lie("two signals swapped", signals=(SIGNALS[1], SIGNALS[0], *SIGNALS[2:]))
    yield _lie("no signals", signals=())
    yield _lie("a signal missing", signals=SIGNALS[:5])
    yield _lie("a signal missing in front", signals=SIGNALS[1:])
    yield _lie("a zero more", signals=(*SIGNALS, 0))
    yield _lie("a signal more", signals=(*SIGNALS, 9))


def wrong_proofs() -> Iterator[Question]:
    words = _words(PROOF)
    for at in range(8):
        yield _lie(f"coordinate {at} changed", proof=_replaced(at, words[at] ^ 1))
        yield _lie(f"coordinate {at} plus q", proof=_replaced(at, words[at] + Q))
    yield _lie("a coordinate of 2^256 - 1", proof=_replaced(0, 2**256 - 1))
    for name, at in {"A": 1, "C": 7}.items():
        yield _lie(f"{name} negated", proof=_replaced(at, Q - words[at]))
    yield _lie("B negated", proof=_replaced(4, Q - words[4], Q - words[5]))
    yield _lie("A and C swapped", proof=_bytes([*words[6:], *words[2:6], *words[:2]]))
    yield _lie(
        "the halves of B swapped", proof=_bytes([*words[:2], words[3], words[2], words[5], words[4], *words[6:]])
    )
    for name, at, count in (("A", 0, 2), ("B", 2, 4), ("C", 6, 2), ("all", 0, 8)):
        yield _lie(f"{name} at infinity", proof=_replaced(at, *[0] * count))
    yield _lie("A off the curve", proof=_replaced(0, 1, 3))
    yield _lie("C off the curve", proof=_replaced(6, 1, 3))
    stray = Proof(_HONEST.a, point_outside_the_subgroup(), _HONEST.c)
    yield _lie("B outside the subgroup", proof=stray.encode())
    yield _lie("A doubled", proof=_doubled(0))
    yield _lie("C doubled", proof=_doubled(6))
    for name, proof in {
        "no proof": b"",
        "a byte short": PROOF[:-1],
        "a word short": PROOF[:-32],
        "a byte long": PROOF + b"\0",
        "a word long": PROOF + bytes(32),
        "a proof twice": PROOF * 2,
        "A alone": PROOF[:64],
    }.items():
        yield _lie(name, proof=proof)


def _doubled(at: int) -> bytes:
    words = _words(PROOF)
    point = _HONEST.a if at == 0 else _HONEST.c
    field = type(G1[0])
    x, y = normalize(multiply((field(point[0]), field(point[1]), field(1)), 2))
    words[at : at + 2] = [int(x), int(y)]
    return _bytes(words)


def wrong_keys() -> Iterator[Question]:
    yield Question("anything, where delta is gamma", "delta is gamma", SIGNALS, GAMMA.forge_without_secrets(SIGNALS))
    forged = _words(GAMMA.forge_without_secrets(SIGNALS))
    minus = _bytes([*forged[:7], Q - forged[7]])
    yield Question("anything, where delta is minus gamma", "delta is minus gamma", SIGNALS, minus)
    by_maker = GENERATOR.forge(SIGNALS)
    yield Question("where delta is the generator", "delta is the generator", SIGNALS, by_maker)
    words = _words(by_maker)
    yield Question(
        "where delta is minus the generator",
        "delta is minus the generator",
        SIGNALS,
        _bytes([*words[:7], Q - words[7]]),
    )
    yield _lie("another key", key="other")
    # The last signal is 0, so that what its point is does not matter to the equation.
    for name in KEYS:
        if name.startswith(("an IC", "two IC", "alpha", "beta", "gamma", "delta out", "delta at")):
            yield _lie(f"{name} of the key", key=name)
    yield _lie("a key of five signals", key="five signals")
    yield _lie("gamma at infinity, signals of another", key="gamma at infinity", signals=_signal(1, 10**6))
    yield _lie("a negligible C where delta is at infinity", key="delta at infinity", proof=_small_c())


def _small_c() -> bytes:
    x, y = normalize(add(G1, multiply(G1, 4)))
    return _replaced(6, int(x), int(y))


def questions() -> list[Question]:
    """All of them, in the order of the file."""
    groups = (real_proofs, proofs_by_trapdoor, wrong_signals, wrong_proofs, wrong_keys)
    return [question for group in groups for question in group()]


def document() -> Document:
    """The file's content, except for what libraries say alone."""
    return {
        "keys": KEYS,
        "vectors": [
            {
                "name": question.name,
                "key": question.key,
                "signals": [str(signal) for signal in question.signals],
                "proof": question.proof.hex(),
                "holds": question.holds,
            }
            for question in questions()
        ],
    }


def text(found: Document) -> str:
    """The file's bytes as text."""
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(document()), encoding="ascii")
