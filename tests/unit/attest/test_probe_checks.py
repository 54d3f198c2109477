"""The second signature over a telemetry root: shown, required, missing and false."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.checks.report import Line, Outcome
from ledger.attest.crypto import babyjub
from ledger.attest.crypto.signing import save_secret
from ledger.cli.main import main
from ledger.cli.probe import read_probe_signature
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.terms.agreement import Agreement
from ledger.errors import DocumentInvalid
from tests.support import examples
from tests.support.forging import Forger

PROBE, OTHER = b"\x21" * 32, b"\x22" * 32


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        examples.remember_pairings(patch)
        yield


def point(secret: bytes) -> dict[str, str]:
    return dict(zip("xy", map(str, babyjub.public_key(secret)), strict=True))


def agreed(signature: str = "required", **changes: Any) -> Forger:
    """The bundle under terms that name a probe; what follows from other terms (seal key, proof) is not made anew."""
    forged = examples.forger()
    probe = {"name": "customer-probe", "babyjubjub_public_key": point(PROBE), "signature": signature, **changes}
    forged.bundle["agreement"]["probe"] = probe
    return forged.agree()


def signed_by(forged: Forger, secret: bytes, root: str | None = None) -> Forger:
    made = babyjub.sign(secret, int(root or forged.bundle["telemetry"]["root"]))
    r8 = {"x": str(made.r8[0]), "y": str(made.r8[1])}
    forged.bundle["telemetry"]["probe_signature"] = {"r8": r8, "s": str(made.s)}
    return forged


def line_of(forged: Forger) -> Line | None:
    return next((line for line in examples.verified(forged).lines if line.check == "probe signature"), None)


@pytest.mark.long
def test_terms_without_a_probe_have_no_line() -> None:
    assert line_of(examples.forger()) is None


@pytest.mark.parametrize("signature", ["required", "shown"])
def test_its_signature_is_accepted(signature: str) -> None:
    found = line_of(signed_by(agreed(signature), PROBE))
    assert found is not None
    assert (found.outcome, found.detail) == (
        Outcome.PASS,
        "the customer's probe customer-probe signed the telemetry root, too",
    )


@pytest.mark.parametrize(("signature", "outcome"), [("required", Outcome.FAIL), ("shown", Outcome.NOT_CHECKED)])
def test_a_missing_one_fails_where_the_terms_require_it(signature: str, outcome: Outcome) -> None:
    found = line_of(agreed(signature))
    assert found is not None
    assert found.outcome is outcome


@pytest.mark.parametrize(
    "lie",
    [
        pytest.param(lambda: signed_by(agreed(), OTHER), id="another key"),
        pytest.param(lambda: signed_by(agreed("shown"), OTHER), id="another key where none is required"),
        pytest.param(lambda: signed_by(agreed(), PROBE, "7"), id="another root"),
        pytest.param(lambda: signed_by(examples.forger(), PROBE), id="a probe that the terms do not name"),
        pytest.param(
            lambda: signed_by(agreed(babyjubjub_public_key={"x": "0", "y": "1"}), PROBE), id="the identity as its key"
        ),
    ],
)
def test_a_false_one_fails(lie: Callable[[], Forger]) -> None:
    found = line_of(lie())
    assert found is not None
    assert found.outcome is Outcome.FAIL


def test_the_collector_signs_for_nobody_else() -> None:
    """Its signature copied, or its key named twice."""
    copied = agreed()
    copied.bundle["telemetry"]["probe_signature"] = copied.bundle["telemetry"]["signature"]
    assert line_of(copied) is not None
    assert "probe signature" in examples.failed(examples.verified(copied))
    document = agreed().bundle["agreement"]
    document["probe"]["babyjubjub_public_key"] = document["collector"]["babyjubjub_public_key"]
    with pytest.raises(DocumentInvalid, match=r"probe\.babyjubjub_public_key"):
        Agreement.from_document(document)


def test_taking_the_probe_out_of_the_terms_is_other_terms() -> None:
    """The document's hash binds it: who drops it has to have everything else signed and proved anew."""
    with_probe, without = agreed(), examples.forger()
    hashes = {Agreement.from_document(each.bundle["agreement"]).doc_sha256 for each in (with_probe, without)}
    assert len(hashes) == 2
    assert "agreement" in examples.failed(examples.verified(with_probe))


def test_the_command_signs_nothing_that_does_not_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle, opening, key, out = (tmp_path / name for name in ("b.json", "o.json", "probe.key", "out.json"))
    assert main(["probe", "key", "--out", str(key), "--json"]) == 0
    named = json.loads(capsys.readouterr().out)["babyjubjub_public_key"]
    opening.write_bytes(canonical_bytes(examples.opening()))
    given = ["--opening", str(opening), "--key", str(key), "--out", str(out)]
    bundle.write_bytes(examples.forger().sign())
    assert main(["probe", "sign", str(bundle), *given]) == 2
    assert "names no probe" in capsys.readouterr().err
    bundle.write_bytes(agreed().sign())
    assert main(["probe", "sign", str(bundle), *given]) == 2
    assert "names another key" in capsys.readouterr().err
    bundle.write_bytes(agreed(babyjubjub_public_key=named).sign())
    assert main(["probe", "sign", str(bundle), *given]) == 1
    assert "nothing was signed: agreement: the statement is for other terms" in capsys.readouterr().err
    assert not out.exists()


def test_a_file_of_another_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="probe signature"):
        read_probe_signature(b'{"format": "sla-ledger/probe-signature/v1"}')
    key = tmp_path / "key"
    save_secret(key, PROBE)
    assert main(["probe", "key", "--out", str(key)]) == 2
