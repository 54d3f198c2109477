"""Which prover, and its limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.attest.proving.circuits import load_circuits
from ledger.attest.proving.proof_makers import RapidsnarkMaker, ResidentMaker, SnarkjsMaker
from ledger.attest.proving.zk_keys import KeyCache
from ledger.errors import SettingInvalid
from ledger.resources import resource_dir
from ledger.settings import ProverName, ProverSettings
from ledger.wiring.provers import chosen_provers


def test_without_settings_it_is_the_resident_one() -> None:
    assert ProverSettings.read({}) == ProverSettings(ProverName.GROTH16PY, 300, 6144, None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("groth16py", ResidentMaker), ("snarkjs", SnarkjsMaker), ("rapidsnark", RapidsnarkMaker)],
)
def test_the_setting_chooses_the_adapter_and_its_limits(name: str, kind: type, tmp_path: Path) -> None:
    environ = {
        "SLA_LEDGER_PROVER": name,
        "SLA_LEDGER_PROVE_TIMEOUT_S": "7",
        "SLA_LEDGER_PROVER_MEMORY_MB": "999",
        "SLA_LEDGER_NODE_MODULES": "/somewhere",
    }
    circuits = load_circuits(resource_dir("circuits"))
    keys = KeyCache(tmp_path, resource_dir("circuits"), print)
    provers = chosen_provers(circuits, keys, ProverSettings.read(environ))
    assert set(provers) == {circuit.name for circuit in circuits}
    for prover in provers.values():
        maker = prover._maker
        assert isinstance(maker, kind)
        assert maker.name == name
        limits = maker._limits if isinstance(maker, ResidentMaker) else maker.limits
        assert (limits.prove_timeout_s, limits.memory_mb) == (7, 999)
        if isinstance(maker, SnarkjsMaker | RapidsnarkMaker):
            assert maker.toolchain.modules == Path("/somewhere")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLA_LEDGER_PROVER", "gnark"),
        ("SLA_LEDGER_PROVE_TIMEOUT_S", "0"),
        ("SLA_LEDGER_PROVE_TIMEOUT_S", "1.5"),
        ("SLA_LEDGER_PROVER_MEMORY_MB", "255"),
        ("SLA_LEDGER_PROVER_MEMORY_MB", "1048577"),
        ("SLA_LEDGER_PROVER_MEMORY_MB", "-1"),
        ("SLA_LEDGER_PROVER_MEMORY_MB", "much"),
    ],
)
def test_a_setting_that_means_nothing_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingInvalid, match=name):
        ProverSettings.read({name: value})
