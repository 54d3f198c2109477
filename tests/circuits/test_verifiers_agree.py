"""py-ecc, groth16py, the contract and snarkjs give one verdict on every vector, and each library's own is known.

Behind this project's checks (one spelling of key, signals and proof; no key that anyone forges under) all four
agree. Some libraries by themselves accept more: ``ALONE`` is the whole list, so that a check which seems to do
nothing is not taken away, and a library that changes is noticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from web3 import Web3

from ledger.attest.proving.prover_process import ProverProcess
from tests.contracts.ground import anvil
from tests.support.anvil import AnvilMissing
from tests.support.node_packages import NodePackagesMissing
from tests.support.verifiers import Groth16py, PyEcc, Snarkjs, Solidity, well_put

pytestmark = pytest.mark.slow

FILE = Path(__file__).parents[1] / "vectors" / "verifiers.json"
VECTORS: dict[str, Any] = json.loads(FILE.read_text())
CASES = {vector["name"]: vector for vector in VECTORS["vectors"]}
NAMES = ("py-ecc", "groth16py", "Solidity", "snarkjs")
ALONE: dict[str, set[str]] = {
    "a signal missing": {"snarkjs"},  # it takes what is missing for 0, which the last signal of these vectors is
    "a zero more": {"Solidity"},  # the ABI leaves what follows the last argument unread
    "a signal more": {"Solidity"},
    **{f"coordinate {at} plus q": {"snarkjs"} for at in range(8)},
    "anything, where delta is gamma": {"groth16py", "snarkjs"},
    "anything, where delta is minus gamma": {"groth16py", "snarkjs"},
    "where delta is the generator": {"groth16py", "snarkjs"},
    "where delta is minus the generator": {"groth16py", "snarkjs"},
    "an IC more of the key": {"Solidity", "snarkjs"},
    "an IC at infinity of the key": {"snarkjs"},
    "an IC of zeros of the key": {"snarkjs"},
    "an IC off the curve of the key": {"snarkjs"},
    "an IC plus q of the key": {"snarkjs"},
}


def question(name: str) -> tuple[Any, list[int], bytes]:
    vector = CASES[name]
    key = VECTORS["keys"][vector["key"]]
    return key, [int(signal) for signal in vector["signals"]], bytes.fromhex(vector["proof"])


class Bench:
    """The four verifiers, each asked everything once at most."""

    def __init__(self, process: ProverProcess, w3: Web3) -> None:
        asked = [question(name) for name in CASES]
        verifiers = PyEcc(), Groth16py(process), Solidity(w3), Snarkjs(asked)
        self._by_name: dict[str, Any] = {verifier.name: verifier for verifier in verifiers}
        self._verdicts: dict[tuple[str, str], bool] = {}

    def holds(self, verifier: str, name: str) -> bool:
        """The verdict behind our checks."""
        if (verifier, name) not in self._verdicts:
            self._verdicts[verifier, name] = self._by_name[verifier].holds(*question(name))
        return self._verdicts[verifier, name]

    def alone(self, verifier: str, name: str) -> bool | None:
        """The library's own verdict; None where it cannot be asked."""
        verdict: bool | None = self._by_name[verifier].alone(*question(name))
        return verdict


@pytest.fixture(scope="module")
def bench(key_cache_dir: Path, absent: Callable[[str], NoReturn]) -> Iterator[Bench]:
    try:
        with anvil() as chain, ProverProcess() as process:
            yield Bench(process, chain.w3)
    except NodePackagesMissing as missing:
        absent(f"snarkjs ({missing})")
    except AnvilMissing as missing:
        absent(str(missing))


def test_the_vectors_are_those_of_the_script() -> None:
    from tests.vectors import make_verifiers  # makes its keys

    assert make_verifiers.FILE == FILE
    assert FILE.read_text() == make_verifiers.text(make_verifiers.document())
    assert len(CASES) == len(VECTORS["vectors"])


@pytest.mark.parametrize("name", CASES)
def test_all_verifiers_give_the_verdict_of_the_vector(bench: Bench, name: str) -> None:
    assert {verifier: bench.holds(verifier, name) for verifier in NAMES} == dict.fromkeys(NAMES, CASES[name]["holds"])


@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name]["holds"]])
def test_what_a_library_alone_accepts_is_known(bench: Bench, name: str) -> None:
    """Where our checks refuse; everything else they pass on as it is."""
    if well_put(*question(name)):
        assert name not in ALONE
    else:
        assert {verifier for verifier in NAMES[1:] if bench.alone(verifier, name)} == ALONE.get(name, set())


def test_how_many_each_verifier_accepts(bench: Bench) -> None:
    expected = sum(vector["holds"] for vector in CASES.values())
    assert not any(CASES[name]["holds"] for name in ALONE)
    for verifier in NAMES:
        accepted = sum(bench.holds(verifier, name) for name in CASES)
        alone = [name for name in CASES if verifier in ALONE.get(name, ())]
        print(
            f"{verifier:<10} {accepted} accepted, {len(CASES) - accepted} refused; alone it would accept "
            f"{len(alone)} more: {', '.join(alone) or 'none'}"
        )
        assert accepted == expected > 0
