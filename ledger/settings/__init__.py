"""What a server process is told from outside: the data directory, the database, where it listens and who may ask.

Arguments win over the environment (``SLA_LEDGER_DATA``, ``DATABASE_URL``, ``SLA_LEDGER_HOST``, ``SLA_LEDGER_PORT``),
and the environment wins over the defaults. docs/settings.md lists them.
"""

from ledger.settings.access import (
    DEFAULT_RATE,
    LOCAL_AUTH,
    LOOPBACK_HOSTS,
    MAX_RATE,
    AuthMode,
    AuthSettings,
    read_auth_settings,
)
from ledger.settings.chain import (
    DEFAULT_CONFIRMATIONS,
    DEFAULT_MAX_FEE_GWEI,
    DEFAULT_REPLACE_AFTER_BLOCKS,
    DEFAULT_WATCH_S,
    HIGHEST_MAX_FEE_GWEI,
    LONGEST_WATCH_S,
    MAX_CONFIRMATIONS,
    ChainSettings,
    read_chain_settings,
)
from ledger.settings.embed import EmbedSettings
from ledger.settings.ingest import BODY_TIMEOUT_S, MAX_OBSERVATION_BYTES, MAX_TELEMETRY_BYTES, IngestSettings
from ledger.settings.logs import LOG_LEVELS, LogFormat, LogSettings
from ledger.settings.prover import (
    DEFAULT_PROVE_TIMEOUT_S,
    DEFAULT_PROVER_MEMORY_MB,
    ProverName,
    ProverSettings,
)
from ledger.settings.reading import MAX_SECONDS
from ledger.settings.recording import Record, read_record
from ledger.settings.roots import DEFAULT_ROOTS_AFTER_S, LONGEST_ROOTS_AFTER_S, MOST_IN_A_BATCH, RootSettings
from ledger.settings.server import DEFAULT_HOST, DEFAULT_PORT, ServerSettings, read_settings
from ledger.settings.webhooks import webhooks_reach_private
from ledger.settings.workers import DEFAULT_LEASE_S, DEFAULT_RING_AGAIN_S, DEFAULT_SCHEDULE_S, WorkerSettings

__all__ = [
    "BODY_TIMEOUT_S",
    "DEFAULT_CONFIRMATIONS",
    "DEFAULT_HOST",
    "DEFAULT_LEASE_S",
    "DEFAULT_MAX_FEE_GWEI",
    "DEFAULT_PORT",
    "DEFAULT_PROVER_MEMORY_MB",
    "DEFAULT_PROVE_TIMEOUT_S",
    "DEFAULT_RATE",
    "DEFAULT_REPLACE_AFTER_BLOCKS",
    "DEFAULT_RING_AGAIN_S",
    "DEFAULT_ROOTS_AFTER_S",
    "DEFAULT_SCHEDULE_S",
    "DEFAULT_WATCH_S",
    "HIGHEST_MAX_FEE_GWEI",
    "LOCAL_AUTH",
    "LOG_LEVELS",
    "LONGEST_ROOTS_AFTER_S",
    "LONGEST_WATCH_S",
    "LOOPBACK_HOSTS",
    "MAX_CONFIRMATIONS",
    "MAX_OBSERVATION_BYTES",
    "MAX_RATE",
    "MAX_SECONDS",
    "MAX_TELEMETRY_BYTES",
    "MOST_IN_A_BATCH",
    "AuthMode",
    "AuthSettings",
    "ChainSettings",
    "EmbedSettings",
    "IngestSettings",
    "LogFormat",
    "LogSettings",
    "ProverName",
    "ProverSettings",
    "Record",
    "RootSettings",
    "ServerSettings",
    "WorkerSettings",
    "read_auth_settings",
    "read_chain_settings",
    "read_record",
    "read_settings",
    "webhooks_reach_private",
]
