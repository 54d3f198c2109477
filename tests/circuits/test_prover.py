"""The prover's child process and its key cache, on real keys of a circuit that compiles in no time."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.attest.proving.circuits import circuit_named, circuit_sources, load_circuits
from ledger.attest.proving.prover_process import ProverProcess
from ledger.attest.proving.zk_keys import MANIFEST, PROVING_KEY, VERIFICATION_KEY, CircuitKey, KeyCache
from ledger.errors import CircuitUnknown, ProverUnavailable
from ledger.resources import resource_dir

SQUARE = """pragma circom 2.1.6;
include "lib/half.circom";
template Square(A, B, C, D) {
    signal input root;
    signal output square;
    square <== root * root;
}
"""


@pytest.fixture
def circuits(tmp_path: Path, key_cache_dir: Path) -> Path:
    """A circuit folder with one tiny circuit, `square`."""
    folder = tmp_path / "circuits"
    (folder / "lib").mkdir(parents=True)
    (folder / "square.circom").write_text(SQUARE)
    (folder / "lib" / "half.circom").write_text("pragma circom 2.1.6;\n")
    (folder / "lib" / "unrelated.circom").write_text("pragma circom 2.1.6;\n")
    document = json.loads((resource_dir("circuits") / "circuits.json").read_text())
    document["circuits"] = [
        document["circuits"][0]
        | {
            "name": "square",
            "source": "square.circom",
            "template": "Square",
            "outputs": ["square"],
            "public_inputs": ["root"],
            "main": "generated/square.circom",
        }
    ]
    (folder / "circuits.json").write_text(json.dumps(document))
    return folder


def ensure(circuits: Path, directory: Path) -> tuple[CircuitKey, list[str]]:
    """The key of `square`, and what was said while getting it."""
    said: list[str] = []
    with ProverProcess() as process:
        return KeyCache(directory, circuits, said.append).ensure(circuit_named(circuits, "square"), process), said


def test_a_key_is_made_once_and_said_to_be_unsafe(circuits: Path, tmp_path: Path) -> None:
    made, said = ensure(circuits, tmp_path / "keys")
    assert len(said) == 1
    assert "unsafe" in said[0]
    assert made.manifest["dev_unsafe"] is True
    assert made.manifest["circuit_id"] == made.circuit_id.hex()
    assert set(made.manifest["toolchain"]) == {"groth16py", "circomlib_sha256"}

    found, said = ensure(circuits, tmp_path / "keys")
    assert said == []
    assert found == made


def test_a_changed_circuit_gets_another_key(circuits: Path, tmp_path: Path) -> None:
    made, _ = ensure(circuits, tmp_path / "keys")
    (circuits / "lib" / "half.circom").write_text("pragma circom 2.1.6;\n// changed\n")
    changed, said = ensure(circuits, tmp_path / "keys")
    assert "changed since" in said[0]
    assert changed.circuit_id != made.circuit_id
    assert changed.manifest["source_sha256"] != made.manifest["source_sha256"]


def test_a_file_that_the_circuit_does_not_include_does_not_matter(circuits: Path, tmp_path: Path) -> None:
    made, _ = ensure(circuits, tmp_path / "keys")
    (circuits / "lib" / "unrelated.circom").write_text("pragma circom 2.1.6;\n// changed\n")
    assert ensure(circuits, tmp_path / "keys") == (made, [])


@pytest.mark.parametrize("name", [PROVING_KEY, VERIFICATION_KEY, MANIFEST])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_key_is_made_again(circuits: Path, tmp_path: Path, name: str, damage: str) -> None:
    made, _ = ensure(circuits, tmp_path / "keys")
    path = made.proving_key.with_name(name)
    data = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    again, said = ensure(circuits, tmp_path / "keys")
    assert "damaged" in said[0]
    assert again.circuit_id != made.circuit_id
    assert ensure(circuits, tmp_path / "keys") == (again, [])


def test_a_key_that_claims_to_be_safe_is_not_a_development_key(circuits: Path, tmp_path: Path) -> None:
    made, _ = ensure(circuits, tmp_path / "keys")
    path = made.proving_key.with_name(MANIFEST)
    path.write_text(json.dumps(made.manifest | {"dev_unsafe": False}))
    _, said = ensure(circuits, tmp_path / "keys")
    assert "damaged" in said[0]


def test_makers_at_the_same_time_share_one_key(circuits: Path, tmp_path: Path) -> None:
    results: list[tuple[CircuitKey, list[str]]] = []
    threads = [threading.Thread(target=lambda: results.append(ensure(circuits, tmp_path / "keys"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({key.circuit_id for key, _ in results}) == 1
    assert sum(len(said) for _, said in results) == 1
    assert [path.name for path in (tmp_path / "keys").iterdir() if path.name.startswith(".making")] == []


def test_what_an_interrupted_maker_left_is_cleared(circuits: Path, tmp_path: Path) -> None:
    left = tmp_path / "keys" / ".making-square-abandoned"
    left.mkdir(parents=True)
    ensure(circuits, tmp_path / "keys")
    assert not left.exists()


def test_signals_named_wrongly_are_noticed(circuits: Path, tmp_path: Path) -> None:
    wrong = replace(circuit_named(circuits, "square"), outputs=("square", "cube"))
    with ProverProcess() as process, pytest.raises(ProverUnavailable, match="2 public signals"):
        KeyCache(tmp_path / "keys", circuits, print).ensure(wrong, process)


def test_a_circuit_that_does_not_compile_is_reported_and_leaves_nothing(circuits: Path, tmp_path: Path) -> None:
    (circuits / "square.circom").write_text(SQUARE.replace("root * root", "root * nothing"))
    with pytest.raises(ProverUnavailable, match="setup"):
        ensure(circuits, tmp_path / "keys")
    assert [path.name for path in (tmp_path / "keys").iterdir()] == [".square.lock"]


def test_a_cache_that_cannot_be_written_is_reported(circuits: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("a file where the folder should be")
    with pytest.raises(ProverUnavailable, match="writable"):
        ensure(circuits, tmp_path / "keys")


def test_the_child_answers_an_error_and_goes_on(key_cache_dir: Path) -> None:
    with ProverProcess() as process:
        with pytest.raises(ProverUnavailable, match="no proving key is loaded"):
            process.request("prove", 30, inputs={})
        with pytest.raises(ProverUnavailable, match="KeyError"):
            process.request("dance", 30)
        assert process.request("toolchain", 30)["groth16py"]
        assert process.generation == 1


# --- children that misbehave: real processes, none of them ours ---------------------------------------


def child(script: str) -> tuple[str, ...]:
    return sys.executable, "-c", script


def test_a_child_that_dies_is_reported_with_its_last_words_and_replaced() -> None:
    with ProverProcess(child("import sys; sys.stdin.readline(); sys.exit('out of memory')")) as process:
        for generation in (1, 2):
            with pytest.raises(ProverUnavailable, match=r"status 1.*out of memory"):
                process.request("prove", 30)
            assert process.generation == generation


def test_a_child_that_is_late_is_stopped() -> None:
    with ProverProcess(child("import time; time.sleep(60)")) as process:
        with pytest.raises(ProverUnavailable, match=r"within 0\.3 s"):
            process.request("prove", 0.3)
        assert process._process is None


def test_a_child_that_never_reads_does_not_block_for_ever() -> None:
    sleeper = child("import time; time.sleep(60)")
    with ProverProcess(sleeper) as process, pytest.raises(ProverUnavailable, match="within"):
        process.request("prove", 0.3, inputs="x" * 1_000_000)


@pytest.mark.parametrize("answer", ["nonsense", "[]", '{"ok": 1}', '{"proof": "00"}'])
def test_an_answer_that_is_none_is_an_error(answer: str) -> None:
    script = f"import sys; sys.stdin.readline(); print({answer!r}); sys.stdin.readline()"
    with ProverProcess(child(script)) as process, pytest.raises(ProverUnavailable):
        process.request("prove", 30)


def test_a_missing_prover_says_what_to_install() -> None:
    script = "raise ModuleNotFoundError(\"No module named 'groth16py'\")"
    with ProverProcess(child(script)) as process, pytest.raises(ProverUnavailable, match="extra 'prove'"):
        process.request("toolchain", 30)


def test_a_command_that_does_not_exist_is_an_error() -> None:
    with ProverProcess(("/nonexistent/prover",)) as process, pytest.raises(ProverUnavailable, match="started"):
        process.request("toolchain", 30)


def test_several_threads_get_their_own_answers() -> None:
    echo = (
        "import sys, json\n"
        "for line in sys.stdin: print(json.dumps({'ok': True, 'n': json.loads(line)['n']}), flush=True)"
    )
    answers: dict[int, int] = {}
    with ProverProcess(child(echo)) as process:
        threads = [
            threading.Thread(target=lambda n=n: answers.update({n: process.request("echo", 30, n=n)["n"]}))
            for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {n: n for n in range(20)}


# --- circuits.json ------------------------------------------------------------------------------------


def test_an_unknown_circuit_names_those_there_are() -> None:
    with pytest.raises(CircuitUnknown, match="compliance_25x4"):
        circuit_named(resource_dir("circuits"), "compliance_1x1")


def test_signals_in_another_order_than_compiled_are_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "circuits"
    shutil.copytree(resource_dir("circuits"), folder)
    document = json.loads((folder / "circuits.json").read_text())
    first = document["circuits"][0]
    first["public_inputs"] = ["telemetryRoot", "ctx", *first["public_inputs"][2:]]
    (folder / "circuits.json").write_text(json.dumps(document))
    with pytest.raises(CircuitUnknown, match="make_signals") as refused:
        load_circuits(folder)
    assert refused.value.data["compiled"][2:4] == ["ctx", "telemetryRoot"]


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "other"}', '{"format": "sla-ledger/circuits/v1"}'])
def test_a_broken_list_of_circuits_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "circuits.json").write_text(text)
    with pytest.raises(CircuitUnknown, match=r"circuits\.json"):
        load_circuits(tmp_path)


def test_every_file_of_ours_is_among_the_sources() -> None:
    folder = resource_dir("circuits")
    read: set[str] = set()
    for circuit in load_circuits(folder):
        read |= set(circuit_sources(circuit, folder))
    assert read == {path.relative_to(folder).as_posix() for path in folder.rglob("*.circom")}
