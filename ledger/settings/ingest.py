"""Bounds of what comes in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.settings.reading import whole_number

MAX_OBSERVATION_BYTES = 64_000_000
MAX_TELEMETRY_BYTES = 16_000_000
BODY_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """Bounds of what comes in by the API and by scraping.

    ``max_observation_bytes`` and ``max_telemetry_bytes`` bound a body as it comes and unpacked; ``body_timeout_s`` is
    how long it may take to come.
    """

    max_observation_bytes: int = MAX_OBSERVATION_BYTES
    max_telemetry_bytes: int = MAX_TELEMETRY_BYTES
    body_timeout_s: float = BODY_TIMEOUT_S

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> IngestSettings:
        """From ``SLA_LEDGER_MAX_OBSERVATION_BYTES``, ``SLA_LEDGER_MAX_TELEMETRY_BYTES`` and
        ``SLA_LEDGER_BODY_TIMEOUT_S``; raises ``SettingInvalid``."""
        return cls(
            whole_number(environ, "SLA_LEDGER_MAX_OBSERVATION_BYTES", MAX_OBSERVATION_BYTES, 1_000_000_000),
            whole_number(environ, "SLA_LEDGER_MAX_TELEMETRY_BYTES", MAX_TELEMETRY_BYTES, 1_000_000_000),
            whole_number(environ, "SLA_LEDGER_BODY_TIMEOUT_S", BODY_TIMEOUT_S, 3_600),
        )
