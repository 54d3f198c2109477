"""Who makes proofs, and within what limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ledger.errors import SettingInvalid
from ledger.settings.reading import seconds

DEFAULT_PROVE_TIMEOUT_S = 300
DEFAULT_PROVER_MEMORY_MB = 6144
LEAST_PROVER_MEMORY_MB = 256
MAX_PROVER_MEMORY_MB = 1 << 20


class ProverName(StrEnum):
    """A prover there is an adapter for."""

    GROTH16PY = "groth16py"
    SNARKJS = "snarkjs"
    RAPIDSNARK = "rapidsnark"


@dataclass(frozen=True, slots=True)
class ProverSettings:
    """``memory_mb`` is what the prover may hold resident, in MiB; ``node_modules`` None takes that of a clone."""

    prover: ProverName = ProverName.GROTH16PY
    timeout_s: int = DEFAULT_PROVE_TIMEOUT_S
    memory_mb: int = DEFAULT_PROVER_MEMORY_MB
    node_modules: Path | None = None

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> ProverSettings:
        """Raises ``SettingInvalid`` naming the setting that is wrong."""
        named = environ.get("SLA_LEDGER_PROVER") or ProverName.GROTH16PY
        if named not in list(ProverName):
            raise SettingInvalid(
                f"SLA_LEDGER_PROVER={named[:20]!r} is none of {', '.join(ProverName)}", setting="SLA_LEDGER_PROVER"
            )
        text = environ.get("SLA_LEDGER_PROVER_MEMORY_MB") or str(DEFAULT_PROVER_MEMORY_MB)
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= 7 else 0
        if not LEAST_PROVER_MEMORY_MB <= number <= MAX_PROVER_MEMORY_MB:
            raise SettingInvalid(
                f"SLA_LEDGER_PROVER_MEMORY_MB={text[:20]!r} is no number between {LEAST_PROVER_MEMORY_MB} and "
                f"{MAX_PROVER_MEMORY_MB}",
                setting="SLA_LEDGER_PROVER_MEMORY_MB",
            )
        modules = environ.get("SLA_LEDGER_NODE_MODULES")
        return cls(
            prover=ProverName(named),
            timeout_s=seconds(environ, "SLA_LEDGER_PROVE_TIMEOUT_S", DEFAULT_PROVE_TIMEOUT_S, least=1),
            memory_mb=number,
            node_modules=Path(modules) if modules else None,
        )
