"""Reading bundles, openings and trust files; pins; openings; how a report ends."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ledger.attest.checks import verification
from ledger.attest.checks.verification import Exit, Outcome
from ledger.domain.attested import SCALAR_ORDER
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import BadInput, DocumentInvalid, NotCanonical
from tests.support import examples

DATA = (examples.VECTORS / "bundle.json").read_bytes()


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        examples.remember_pairings(patch)
        yield


# --- bytes -------------------------------------------------------------------------------------

NOT_EXACT: dict[str, Callable[[bytes], bytes]] = {
    "a newline at the end": lambda data: data + b"\n",
    "a space inside": lambda data: data.replace(b'"anchor":', b'"anchor": ', 1),
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "keys in another order": lambda data: json.dumps(dict(reversed(json.loads(data).items()))).encode(),
    "a key twice": lambda data: data.replace(b'"format":', b'"format":"x","format":', 1),
    "an escape for a plain letter": lambda data: data.replace(b"groth16", b"groth\\u0031\\u0036", 1),
    "a float": lambda data: data.replace(b'"windows":24', b'"windows":24.0', 1),
    "an exponent": lambda data: data.replace(b'"windows":24', b'"windows":24e0', 1),
    "minus zero": lambda data: data.replace(b'"excluded":0', b'"excluded":-0', 1),
    "not a number": lambda data: data.replace(b'"windows":24', b'"windows":NaN', 1),
    "a number beyond 2^53": lambda data: data.replace(b'"windows":24', b'"windows":9007199254740993', 1),
    "cut off": lambda data: data[:-1],
    "not UTF-8": lambda data: data.replace(b"USD", b"US\xff", 1),
    "a lone surrogate": lambda data: data.replace(b"USD", b"\\ud800", 1),
    "two documents": lambda data: data + data,
    "nothing": lambda data: b"",
    "text": lambda data: b"this is no bundle",
    "deep nesting": lambda data: b"[" * 100_000,
    "deep but parsable nesting": lambda data: b"[" * 70 + b"]" * 70,
    "too many bytes": lambda data: data + b" " * verification.MAX_BUNDLE_BYTES,
}


@pytest.mark.parametrize("name", NOT_EXACT)
def test_only_the_exact_bytes_are_read(name: str) -> None:
    changed = NOT_EXACT[name](DATA)
    assert changed != DATA
    with pytest.raises(NotCanonical):
        verification.read_bundle(changed)


@pytest.mark.parametrize("value", [None, [], "bundle", 7, {}, {"format": "sla-ledger/bundle/v2"}])
def test_another_document_is_no_bundle(value: Any) -> None:
    with pytest.raises(DocumentInvalid, match="the bundle is not of its format"):
        verification.read_bundle(canonical_bytes(value))


@pytest.mark.parametrize(
    ("read", "given", "message"),
    [
        (verification.read_bundle, "trust", "the bundle is not of its format: this is a trust file"),
        (verification.read_trust, "opening", "the trust file is not of its format: this is an opening"),
        (verification.read_opening, "bundle", "the opening is not of its format: this is a bundle"),
    ],
)
def test_files_that_were_mixed_up_are_called_what_they_are(read: Any, given: str, message: str) -> None:
    with pytest.raises(DocumentInvalid, match=f"^{message}$"):
        read((examples.VECTORS / f"{given}.json").read_bytes())


def test_an_unknown_member_is_refused_by_name() -> None:
    with pytest.raises(DocumentInvalid, match=r"anchor\.confirmations: unknown key"):
        verification.read_bundle(
            canonical_bytes(dict(examples.bundle()) | {"anchor": examples.bundle()["anchor"] | {"confirmations": 3}})
        )


def test_trust_files_may_be_written_by_hand() -> None:
    written = json.dumps(examples.trust(), indent=2).encode() + b"\n"
    assert verification.read_trust(written) == examples.trust()


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"format":"sla-ledger/trust/v1"}', DATA],
    ids=["nothing", "a list", "no members", "a format alone", "a bundle"],
)
def test_another_document_is_no_trust_file(data: bytes) -> None:
    with pytest.raises(BadInput):
        verification.read_trust(data)


# --- pins --------------------------------------------------------------------------------------


def pins(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(dict(examples.trust())) | changes


CIRCUIT = examples.trust()["circuits"][0]
OTHER_PINS: dict[str, tuple[dict[str, Any], str]] = {
    "another log key": (pins(log=examples.trust()["log"] | {"vkey": "a.example/log+00000000+AQ"}), "pin: log"),
    "another log origin": (pins(log=examples.trust()["log"] | {"origin": "a.example/log"}), "pin: log"),
    "another issuer": (pins(issuer_ed25519_public_key="ab" * 32), "pin: issuer"),
    "another customer": (pins(customer_ed25519_public_key="ab" * 32), "pin: customer"),
    "another circuit": (pins(circuits=[CIRCUIT | {"circuit_id": "ab" * 32}]), "pin: circuit"),
    "no development key": (pins(circuits=[CIRCUIT | {"dev_unsafe": False}]), "pin: circuit"),
    "no circuit at all": (pins(circuits=[]), "pin: circuit"),
    "another chain": (pins(chain_id="1"), "pin: chain"),
    "another registry": (pins(registry="0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"), "pin: registry"),
}


@pytest.mark.parametrize("name", OTHER_PINS)
def test_a_pin_that_does_not_fit_fails_alone(name: str) -> None:
    trust, pin = OTHER_PINS[name]
    report = verification.verify_bundle(examples.bundle(), verification.read_trust(canonical_bytes(trust)))
    assert examples.failed(report) == {pin}
    assert report.exit_code(accept_dev=True) is Exit.FAILED


def test_several_circuits_may_be_accepted() -> None:
    trust = pins(circuits=[CIRCUIT | {"circuit_id": "ab" * 32}, CIRCUIT])
    assert not examples.failed(verification.verify_bundle(examples.bundle(), trust))


def test_without_pins_nothing_is_more_than_consistent() -> None:
    report = verification.verify_bundle(examples.bundle())
    assert not examples.failed(report)
    assumed = {line.check for line in report.lines if line.outcome is Outcome.ASSUMED}
    assert assumed == {"dev key", *(f"pin: {name}" for name in "log issuer customer circuit chain registry".split())}
    assert report.exit_code(accept_dev=True) is Exit.NOT_PINNED


def test_a_development_key_must_be_accepted_by_name() -> None:
    report = verification.verify_bundle(examples.bundle(), examples.trust())
    assert report.exit_code(accept_dev=False) is Exit.NOT_PINNED
    assert report.exit_code(accept_dev=True) is Exit.HOLDS
    (line,) = [line for line in report.lines if line.check == "dev key"]
    assert "the issuer can forge this" in line.detail


def test_a_failed_check_outweighs_missing_pins() -> None:
    forged = examples.forger()
    forged.bundle["anchor"]["tx_hash"] = "0x" + "ab" * 32
    report = verification.verify_bundle(verification.read_bundle(forged.sign()))
    assert report.exit_code(accept_dev=True) is Exit.FAILED


# --- openings ----------------------------------------------------------------------------------


def opened(name: str = "opening") -> Any:
    return copy.deepcopy(dict(examples.opening(name)))


def cells(document: Any, window: int) -> Any:
    return document["windows"][window]["cells"]


def zeroed(document: Any) -> None:
    for cell in cells(document, 13).values():
        cell.update(good=0, bad=0)


def unobserved(document: Any) -> None:
    zeroed(document)
    document["windows"][13]["state"] = "no_data"


def moved(document: Any) -> None:
    """One request counted an hour later: every total stays as it was."""
    cells(document, 3)["availability"]["good"] -= 1
    cells(document, 4)["availability"]["good"] += 1


OPENINGS: dict[str, Callable[[Any], object]] = {
    "one count lower": lambda o: cells(o, 13)["availability"].update(bad=0),
    "one count higher": lambda o: cells(o, 0)["ttft"].update(good=4),
    "a request moved to another hour": moved,
    "an hour zeroed": zeroed,
    "an hour said to be unobserved": unobserved,
    "counts in an hour without data": lambda o: o["windows"][0].update(state="no_data"),
    "an hour excluded": lambda o: (zeroed(o), o["windows"][13].update(state="excluded")),
    "another salt": lambda o: o.update(salts=[str((int(o["salts"][0]) + 1) % SCALAR_ORDER)]),
    "the same salt plus r": lambda o: o.update(salts=[str(int(o["salts"][0]) + SCALAR_ORDER)]),
    "a salt too many": lambda o: o["salts"].append("0"),
    "an hour left out": lambda o: o["windows"].pop(),
    "an hour more": lambda o: o["windows"].append(o["windows"][-1]),
    "hours in another order": lambda o: o["windows"].reverse(),
    "an objective left out": lambda o: cells(o, 0).pop("ttft"),
    "an objective more": lambda o: cells(o, 0).update(extra={"good": 0, "bad": 0}),
    "another statement": lambda o: o.update(statement_id="x.2024-03-01.v1"),
}


def test_an_opening_gives_every_number_again() -> None:
    report = verification.verify_bundle(examples.bundle(), examples.trust(), examples.opening())
    (line,) = [line for line in report.lines if line.check == "opening"]
    assert line.outcome is Outcome.PASS
    assert not any("stated counts" in text for text in report.not_established)


@pytest.mark.parametrize("name", OPENINGS)
def test_an_opening_that_was_altered_fails(name: str) -> None:
    document = opened()
    OPENINGS[name](document)
    given = verification.read_opening(canonical_bytes(document))
    assert examples.failed(verification.verify_bundle(examples.bundle(), examples.trust(), given)) == {"opening"}


def test_the_opening_of_another_period_fails() -> None:
    report = verification.verify_bundle(examples.bundle("bundle_next_day"), examples.trust(), examples.opening())
    assert examples.failed(report) == {"opening"}


def test_a_withheld_period_can_be_opened() -> None:
    bundle, opening = examples.bundle("bundle_withheld"), examples.opening("opening_withheld")
    assert not examples.failed(verification.verify_bundle(bundle, examples.trust(), opening))
