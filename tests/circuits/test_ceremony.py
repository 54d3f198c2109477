"""Keys from a ceremony: what its check finds, and that only the pinned key proves. A real ceremony in miniature."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ledger.attest.proving.ceremony import Outcome, check_file, contribution_hash
from ledger.attest.proving.ceremony_keys import (
    PROVING_KEY,
    VERIFICATION_KEY,
    ZKEY,
    PinnedKeys,
    import_key,
    imported_key,
    read_pins,
    write_pin,
)
from ledger.attest.proving.ceremony_manifest import CeremonyManifest, describe, read_manifest
from ledger.attest.proving.circuits import Circuit, circuit_named
from ledger.attest.proving.powers_of_tau import PUBLISHED, identify
from ledger.attest.proving.prover import Groth16Prover
from ledger.attest.proving.prover_process import ProverProcess
from ledger.attest.proving.zk_keys import MANIFEST, KeyCache
from ledger.attest.proving.zkey import read_zkey
from ledger.cli.main import main
from ledger.errors import ProvingKeyInvalid, ProvingKeyRefused
from ledger.resources import resource_dir
from ledger.wiring.proving_pins import PROVING_PINS
from ledger.wiring.services import create_data, open_data
from tests.circuits.test_proof_makers import HONEST, Signed
from tests.support import node_packages
from tests.support.ceremony import Ceremony, ceremony, snarkjs, write_circuits

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def held(key_cache_dir: Path, absent: Callable[[str], NoReturn]) -> Ceremony:
    try:
        return ceremony(key_cache_dir)
    except node_packages.NodePackagesMissing as missing:
        absent(str(missing))


@pytest.fixture
def circuits(tmp_path: Path) -> Path:
    folder = tmp_path / "circuits"
    folder.mkdir()
    template = json.loads((resource_dir("circuits") / "circuits.json").read_text())["circuits"][0]
    return write_circuits(folder, template)


@pytest.fixture
def circuit(circuits: Path) -> Circuit:
    return circuit_named(circuits, "square")


@pytest.fixture
def cache(tmp_path: Path, circuits: Path) -> KeyCache:
    return KeyCache(tmp_path / "keys", circuits, print)


@pytest.fixture
def manifest(held: Ceremony, circuit: Circuit, circuits: Path) -> CeremonyManifest:
    return read_manifest(describe(circuit, circuits, held.final, read_zkey(held.final), "", safe=True))


def outcomes(path: Path, signals: int = 2) -> dict[str, str]:
    return {each.what: str(each.outcome) for each in check_file(read_zkey(path), signals)}


def failed(path: Path) -> set[str]:
    return {what for what, outcome in outcomes(path).items() if outcome == Outcome.FAIL}


def ceremony_check(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, dict[str, Any]]:
    try:
        code = main(["keys", "ceremony-check", *map(str, arguments), "--circuit", "square", "--json"])
    except SystemExit as ended:
        code = int(ended.code or 0)
    out = capsys.readouterr().out
    return code, json.loads(out) if out else {}


# --- what the file shows -------------------------------------------------------------------------


def test_a_ceremony_that_was_held_passes(held: Ceremony) -> None:
    assert set(outcomes(held.final).values()) == {"PASS"}


def test_a_key_that_nobody_contributed_to_is_refused_and_says_what_to_do(held: Ceremony) -> None:
    assert failed(held.initial) == {"verification key", "contributions", "beacon last"}
    (line,) = [each for each in check_file(read_zkey(held.initial), 2) if each.what == "contributions"]
    assert "snarkjs zkey contribute" in line.detail


def test_a_ceremony_without_a_beacon_is_refused(held: Ceremony) -> None:
    assert failed(held.contributed) == {"beacon last"}


def test_a_beacon_alone_is_no_ceremony(held: Ceremony, tmp_path: Path) -> None:
    out = tmp_path / "beacon.zkey"
    snarkjs(tmp_path, "zkey", "beacon", str(held.initial), str(out), "ab" * 32, "10")
    assert failed(out) == {"contributions"}


def test_a_contribution_after_the_beacon_is_refused(held: Ceremony, tmp_path: Path) -> None:
    out = tmp_path / "after.zkey"
    snarkjs(tmp_path, "zkey", "contribute", str(held.final), str(out), "--name=late", "-e=anything")
    assert failed(out) == {"beacon last"}


def test_a_key_for_another_number_of_signals_is_refused(held: Ceremony) -> None:
    assert outcomes(held.final, 6)["public signals"] == "FAIL"


def sections(data: bytes) -> dict[int, tuple[int, int]]:
    found, at = {}, 12
    while at < len(data):
        number, size = int.from_bytes(data[at : at + 4], "little"), int.from_bytes(data[at + 4 : at + 12], "little")
        found[number] = (at + 12, size)
        at += 12 + size
    return found


def test_a_changed_history_is_found(held: Ceremony, tmp_path: Path) -> None:
    """A byte of the circuit hash: no step names it."""
    data = bytearray(held.final.read_bytes())
    data[sections(bytes(data))[10][0]] ^= 1
    (tmp_path / "changed.zkey").write_bytes(data)
    assert failed(tmp_path / "changed.zkey") == {"transcript"}


def test_a_delta_that_is_not_the_last_steps_is_found(held: Ceremony, tmp_path: Path) -> None:
    """The header of the key before the beacon under the history after it."""
    before, after = held.contributed.read_bytes(), bytearray(held.final.read_bytes())
    (start, size), (old, old_size) = sections(bytes(after))[2], sections(before)[2]
    assert size == old_size
    after[start : start + size] = before[old : old + size]
    (tmp_path / "mixed.zkey").write_bytes(after)
    assert failed(tmp_path / "mixed.zkey") == {"delta"}


@pytest.mark.parametrize("cut", [0, 4, 11, 30, 400, -1])
def test_a_file_that_is_cut_is_no_key(held: Ceremony, tmp_path: Path, cut: int) -> None:
    (tmp_path / "cut.zkey").write_bytes(held.final.read_bytes()[:cut])
    with pytest.raises(ProvingKeyInvalid):
        read_zkey(tmp_path / "cut.zkey")


def test_what_contributors_were_shown_is_in_the_file(held: Ceremony) -> None:
    said = snarkjs(held.folder, "zkey", "verify", "square.r1cs", "final.ptau", "final.zkey")
    shown = "".join(said.split())
    for step in read_zkey(held.final).contributions:
        assert contribution_hash(step).hex() in shown


# --- the command ---------------------------------------------------------------------------------


def test_the_command_checks_every_step_with_snarkjs(
    held: Ceremony, circuits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sha256 = hashlib.sha256(held.ptau.read_bytes()).hexdigest()
    common = (held.final, "--circuits", circuits)
    code, report = ceremony_check(
        capsys, *common, "--ptau", held.ptau, "--accept-ptau", sha256, "--manifest", tmp_path / "m"
    )
    assert (code, {line["outcome"] for line in report["checks"]}) == (0, {"PASS"})
    made = json.loads((tmp_path / "m").read_text())
    assert report["pin"] == hashlib.sha256((tmp_path / "m").read_bytes()).hexdigest()
    assert (made["dev_unsafe"], made["ptau_sha256"]) == (False, sha256)
    assert [each["name"] for each in made["contributions"]] == ["alice", "bob"]

    code, report = ceremony_check(capsys, *common, "--ptau", held.ptau)
    assert (code, [line["check"] for line in report["checks"] if line["outcome"] == "ASSUMED"]) == (
        3,
        ["powers of tau"],
    )
    code, report = ceremony_check(capsys, *common, "--manifest", tmp_path / "unchecked")
    assert code == 3
    assert json.loads((tmp_path / "unchecked").read_text())["dev_unsafe"] is True


def test_a_key_of_another_circuit_fails(held: Ceremony, circuits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = circuits / "square.circom"
    source.write_text(source.read_text().replace("LessThan(16)", "LessThan(17)"))
    code, report = ceremony_check(capsys, held.final, "--circuits", circuits, "--ptau", held.ptau)
    assert (code, report["checks"][-1]["outcome"]) == (1, "FAIL")


def test_a_key_without_contribution_exits_with_1_and_a_text_file_with_2(
    held: Ceremony, circuits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = ceremony_check(capsys, held.initial, "--circuits", circuits, "--manifest", tmp_path / "m")
    assert (code, report["pin"], (tmp_path / "m").exists()) == (1, None, False)
    (tmp_path / "text").write_text("no key")
    assert ceremony_check(capsys, tmp_path / "text", "--circuits", circuits)[0] == 2


def test_powers_of_tau_that_nobody_published_are_told(held: Ceremony) -> None:
    assert identify(held.ptau).published == ""
    assert all(len(digest) == 128 for digest in PUBLISHED)


# --- importing and pinning -----------------------------------------------------------------------


def test_the_imported_key_proves_and_no_other_does(
    held: Ceremony, circuit: Circuit, cache: KeyCache, manifest: CeremonyManifest, tmp_path: Path
) -> None:
    with ProverProcess() as process:
        key = import_key(cache, circuit, held.final, manifest, manifest.digest, process, held.wasm)
    assert key.manifest["dev_unsafe"] is False
    assert (key.zkey, key.witness_wasm) != (None, None)
    pins = tmp_path / "proving-keys.json"
    write_pin(pins, "square", manifest.digest)
    write_pin(pins, "other", "0" * 64)
    assert read_pins(pins) == {"square": manifest.digest, "other": "0" * 64}
    with Groth16Prover(circuit, PinnedKeys(cache, read_pins(pins))) as prover:
        assert prover.prove(HONEST, Signed((81, 9)))
        assert prover.key() == key

    for name, change in ((MANIFEST, b" "), (ZKEY, b"\0"), (VERIFICATION_KEY, b"x")):
        path = key.proving_key.with_name(name)
        good = path.read_bytes()
        path.write_bytes(good + change)
        with pytest.raises(ProvingKeyRefused):
            imported_key(cache, circuit, manifest.digest)
        path.write_bytes(good)
    key.proving_key.with_name(PROVING_KEY).unlink()
    with pytest.raises(ProvingKeyRefused, match="import it again"):
        imported_key(cache, circuit, manifest.digest)


def test_where_a_key_is_pinned_no_development_key_takes_its_place(circuit: Circuit, cache: KeyCache) -> None:
    with ProverProcess() as process, pytest.raises(ProvingKeyRefused, match="import it again"):
        PinnedKeys(cache, {"square": "0" * 64}).ensure(circuit, process)
    assert not cache.directory.exists()


def test_what_does_not_fit_the_pin_is_refused(
    held: Ceremony, circuit: Circuit, circuits: Path, cache: KeyCache, manifest: CeremonyManifest
) -> None:
    def refused(match: str, zkey: Path = held.final, changes: dict[str, Any] | None = None, pin: str = "") -> None:
        altered = read_manifest(json.dumps(manifest.document | (changes or {})).encode())
        with ProverProcess() as process, pytest.raises(ProvingKeyRefused, match=match):
            import_key(cache, circuit, zkey, altered, pin or altered.digest, process)

    refused("was pinned", pin="1" * 64)
    refused("is for compliance_25x4", changes={"circuit": "compliance_25x4"})
    refused("other circuit files", changes={"source_sha256": "2" * 64})
    refused("its manifest says", zkey=held.contributed)
    refused("another history", changes={"contributions": []})
    refused("circuit id", changes={"circuit_id": "3" * 64})
    (circuits / "square.circom").write_text((circuits / "square.circom").read_text() + "// changed\n")
    refused("other circuit files")
    assert not list(cache.directory.glob("ceremony-*"))


@pytest.mark.parametrize("text", [b"{", b"[]", b"{}", b'{"format": "sla-ledger/ceremony-key/v1"}'])
def test_what_is_no_manifest_is_refused(text: bytes) -> None:
    with pytest.raises(ProvingKeyInvalid):
        read_manifest(text)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "other", "pins": {}}', '{"format": "sla-ledger/key-pins/v1"}'])
def test_a_broken_list_of_pins_does_not_mean_that_nothing_is_pinned(tmp_path: Path, text: str) -> None:
    (tmp_path / "pins").write_text(text)
    with pytest.raises(ProvingKeyInvalid):
        read_pins(tmp_path / "pins")
    assert read_pins(tmp_path / "absent") == {}


def test_a_data_directory_proves_with_what_was_imported_alone(
    held: Ceremony,
    circuits: Path,
    manifest: CeremonyManifest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(tmp_path / "keys"))
    data = tmp_path / "data"
    create_data(data, key_cache=tmp_path / "keys", notify=print).close()
    (tmp_path / "manifest.json").write_bytes(manifest.text)

    def run_import(pin: str) -> int:
        files = [str(held.final), "--circuit", "square", "--manifest", str(tmp_path / "manifest.json")]
        places = ["--data", str(data), "--circuits", str(circuits), "--wasm", str(held.wasm)]
        return main(["keys", "import", *files, *places, "--pin", pin, "--json"])

    assert run_import("0" * 64) == 1
    assert "was pinned" in capsys.readouterr().err
    assert read_pins(data / PROVING_PINS) == {}
    assert run_import(manifest.digest) == 0
    imported = json.loads(capsys.readouterr().out)
    assert (imported["pin"], imported["dev_unsafe"]) == (manifest.digest, False)
    assert main(["keys", "pins", "--data", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"square": manifest.digest}

    write_pin(data / PROVING_PINS, "compliance_25x4", "0" * 64)
    services = open_data(data, key_cache=tmp_path / "keys", notify=print)
    try:
        with pytest.raises(ProvingKeyRefused, match="import it again"):
            services.warm_provers()
    finally:
        services.close()
