"""Every setting that a process takes from its environment, and which process reads it.

The tables of docs/settings.md are made from this list, tests hold the code to it, and what a deployment gives to a
process is checked against it. How a value is read and refused is in ``ledger.settings``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ledger import settings


class Reader(StrEnum):
    """A kind of process, named by its command."""

    UP = "up"
    WORKER = "worker run"
    RELAY = "worker relay"
    BEAT = "worker beat"
    COMMANDS = "commands"
    """Commands that run to their end: init, observe, close, chain deploy, health ..."""


class Topic(StrEnum):
    """A table of the settings reference."""

    PLACES = "places"
    LOGS = "logs"
    ACCESS = "access"
    INGEST = "ingest"
    CHAIN = "chain"
    PROVING = "proving"
    WORKERS = "workers"
    WEBHOOKS = "webhooks"
    DASHBOARD = "dashboard"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``default`` and ``meaning`` are for people, in Markdown. ``argument`` wins over the environment.

    A ``secret`` holds a password or key, or may hold one: it is never shown or logged.
    """

    name: str
    topic: Topic
    default: str
    meaning: str
    readers: tuple[Reader, ...]
    argument: str = ""
    secret: bool = False


EVERYBODY: Final = tuple(Reader)
SERVICES: Final = (Reader.UP, Reader.WORKER, Reader.RELAY, Reader.BEAT)
SERVER: Final = (Reader.UP,)
SIGNERS: Final = (Reader.UP, Reader.BEAT, Reader.COMMANDS)
CHAIN_USERS: Final = (Reader.UP, Reader.WORKER, Reader.COMMANDS)
WATCHERS: Final = (Reader.UP, Reader.WORKER, Reader.BEAT, Reader.COMMANDS)
"""Those who send to the chain, and those who look at it."""
ROOT_READERS: Final = (Reader.UP, Reader.WORKER, Reader.BEAT, Reader.COMMANDS)

SETTINGS: Final = (
    Setting(
        "SLA_LEDGER_DATA",
        Topic.PLACES,
        "none",
        "data directory, as `init` or `demo --out` makes it",
        EVERYBODY,
        argument="--data DIR",
    ),
    Setting(
        "DATABASE_URL",
        Topic.PLACES,
        "none",
        "PostgreSQL (`postgresql://...`) instead of a file in the data directory: [postgresql.md](postgresql.md)",
        EVERYBODY,
        argument="--database URL",
        secret=True,
    ),
    Setting(
        "SLA_LEDGER_HOST",
        Topic.PLACES,
        f"`{settings.DEFAULT_HOST}`",
        "IP address to listen on; in mode `local` a loopback one (`127.0.0.1`, `::1`)",
        SERVER,
        argument="up --host ADDRESS",
    ),
    Setting(
        "SLA_LEDGER_PORT",
        Topic.PLACES,
        f"`{settings.DEFAULT_PORT}`",
        "0 takes a free port, which is printed",
        SERVER,
        argument="up --port PORT",
    ),
    Setting(
        "SLA_LEDGER_KEY_CACHE",
        Topic.PLACES,
        "`$XDG_CACHE_HOME/sla-ledger/keys`, or `~/.cache/sla-ledger/keys`",
        "where proving keys are kept; `make` uses `var/keys`. It may be read-only once `init --proving-keys` has run",
        CHAIN_USERS,
    ),
    Setting(
        "SLA_LEDGER_PROVER",
        Topic.PROVING,
        f"`{settings.ProverName.GROTH16PY}`",
        "who makes proofs: `groth16py`, resident in a child process; `snarkjs`; `rapidsnark`, a program on PATH. The "
        "last two need a ceremony's key ([ceremony.md](ceremony.md)) and Node.js",
        CHAIN_USERS,
    ),
    Setting(
        "SLA_LEDGER_PROVE_TIMEOUT_S",
        Topic.PROVING,
        f"`{settings.DEFAULT_PROVE_TIMEOUT_S}`",
        "how long one proof may take",
        CHAIN_USERS,
    ),
    Setting(
        "SLA_LEDGER_PROVER_MEMORY_MB",
        Topic.PROVING,
        f"`{settings.DEFAULT_PROVER_MEMORY_MB}`",
        "MiB that the prover's process and its children may hold; one that takes more is stopped",
        CHAIN_USERS,
    ),
    Setting(
        "SLA_LEDGER_NODE_MODULES",
        Topic.PROVING,
        "`toolchain/node_modules` in a clone",
        "folder with the packages of toolchain/, for the prover `snarkjs`, `keys ceremony-check` and `verify-page`",
        CHAIN_USERS,
    ),
    Setting(
        "SLA_LEDGER_LOG_KEY",
        Topic.PLACES,
        "`keys/log.key`",
        "the log's signing key as one `PRIVATE+KEY` line; for a new data directory it is the first key, and its name "
        "the origin",
        SIGNERS,
        secret=True,
    ),
    Setting(
        "SLA_LEDGER_WITNESSES",
        Topic.PLACES,
        "`DIR/witnesses.json`",
        "file of witnesses to ask for cosignatures; without one nobody is asked",
        SIGNERS,
    ),
    Setting(
        "SLA_LEDGER_LOG_FORMAT",
        Topic.LOGS,
        f"`{settings.LogFormat.TEXT}`",
        "`text` for people, or `json`: one object a line, on stderr",
        SERVICES,
    ),
    Setting(
        "SLA_LEDGER_LOG_LEVEL",
        Topic.LOGS,
        "`warning`; `info` with `json`",
        f"the least that is logged: {', '.join(f'`{level}`' for level in settings.LOG_LEVELS)}",
        SERVICES,
    ),
    Setting(
        "SLA_LEDGER_AUTH",
        Topic.ACCESS,
        f"`{settings.AuthMode.LOCAL}`",
        "`local`: on loopback whoever asks is the operator; `required`: credentials are needed",
        SERVER,
        argument="up --auth MODE",
    ),
    Setting(
        "SLA_LEDGER_HOSTS",
        Topic.ACCESS,
        "none",
        "host names, without port and with commas between, that this server goes by, beside the loopback ones",
        SERVER,
    ),
    Setting(
        "SLA_LEDGER_AUTH_ISSUER",
        Topic.ACCESS,
        "none",
        "`iss` of access tokens; belongs together with the next two",
        SERVER,
    ),
    Setting("SLA_LEDGER_AUTH_AUDIENCE", Topic.ACCESS, "none", "`aud` that access tokens must name", SERVER),
    Setting(
        "SLA_LEDGER_AUTH_JWKS",
        Topic.ACCESS,
        "none",
        "the issuer's key set: an https URL, an http one on this machine, or a file",
        SERVER,
    ),
    Setting("SLA_LEDGER_AUTH_TENANT_CLAIM", Topic.ACCESS, "`tenant`", "the claim that names the tenant", SERVER),
    Setting(
        "SLA_LEDGER_RATE_LIMIT",
        Topic.ACCESS,
        f"{settings.DEFAULT_RATE[settings.AuthMode.REQUIRED]} in mode `required`, else 0",
        "requests a minute of one principal; 0: no limit",
        SERVER,
    ),
    Setting(
        "SLA_LEDGER_MAX_OBSERVATION_BYTES",
        Topic.INGEST,
        f"`{settings.MAX_OBSERVATION_BYTES}`",
        "largest request log that is taken in, as it comes and unpacked",
        SERVER,
    ),
    Setting(
        "SLA_LEDGER_MAX_TELEMETRY_BYTES",
        Topic.INGEST,
        f"`{settings.MAX_TELEMETRY_BYTES}`",
        "the same of metrics and breaker events",
        SERVER,
    ),
    Setting(
        "SLA_LEDGER_BODY_TIMEOUT_S",
        Topic.INGEST,
        f"`{settings.BODY_TIMEOUT_S}`",
        "how long a body may take to come",
        SERVER,
    ),
    Setting(
        "SLA_LEDGER_CHAIN_RPC",
        Topic.CHAIN,
        "the embedded chain",
        "`http://` or `https://` URL of a node's JSON-RPC. It may hold a key, so messages and logs name its host alone",
        WATCHERS,
        secret=True,
    ),
    Setting(
        "SLA_LEDGER_REGISTRY",
        Topic.CHAIN,
        "the registry of the data directory's deployer key",
        "address of a registry that stands already",
        WATCHERS,
    ),
    Setting(
        "SLA_LEDGER_CONFIRMATIONS",
        Topic.CHAIN,
        f"{settings.DEFAULT_CONFIRMATIONS}; 1 on chain 31337",
        "blocks that must stand, the transaction's own included, before an anchor is confirmed: 1 to "
        f"{settings.MAX_CONFIRMATIONS}",
        WATCHERS,
    ),
    Setting(
        "SLA_LEDGER_MAX_FEE_GWEI",
        Topic.CHAIN,
        str(settings.DEFAULT_MAX_FEE_GWEI),
        "the most that a transaction offers for a unit of gas, in gwei; where the chain takes more, it waits: 1 to "
        f"{settings.HIGHEST_MAX_FEE_GWEI}",
        WATCHERS,
    ),
    Setting(
        "SLA_LEDGER_REPLACE_AFTER_BLOCKS",
        Topic.CHAIN,
        str(settings.DEFAULT_REPLACE_AFTER_BLOCKS),
        f"blocks that a transaction may miss before a dearer one takes its place: 1 to {settings.MAX_CONFIRMATIONS}",
        WATCHERS,
    ),
    Setting(
        "SLA_LEDGER_CHAIN_WATCH_S",
        Topic.CHAIN,
        f"`{settings.DEFAULT_WATCH_S}`",
        "seconds between two looks at the chain while a transaction or an anchor of this ledger is not final yet; "
        f"four times as many while all are: 1 to {settings.LONGEST_WATCH_S}",
        (Reader.UP, Reader.BEAT),
    ),
    Setting(
        "SLA_LEDGER_RECORD",
        Topic.CHAIN,
        f"`{settings.Record.EACH}`",
        f"`{settings.Record.EACH}`: the registry checks and records every proof; `{settings.Record.ON_DEMAND}`: roots "
        "are published, and a statement is recorded once somebody asks (`sla-ledger chain record`)",
        CHAIN_USERS,
    ),
    Setting(
        "SLA_LEDGER_ROOT_CHAINS",
        Topic.CHAIN,
        "`DIR/root-chains.json`, if it is there",
        "file of further chains that batch roots are published on ([operations.md](operations.md#further-chains)). It "
        "may hold URLs with keys",
        ROOT_READERS,
        secret=True,
    ),
    Setting(
        "SLA_LEDGER_ROOTS_AFTER_S",
        Topic.CHAIN,
        f"`{settings.DEFAULT_ROOTS_AFTER_S}`",
        f"how long a statement waits for others before their root is published: 1 to {settings.LONGEST_ROOTS_AFTER_S}",
        (Reader.UP, Reader.BEAT),
    ),
    Setting(
        "SLA_LEDGER_ROOTS_MOST",
        Topic.CHAIN,
        f"`{settings.MOST_IN_A_BATCH}`",
        f"so many statements wait for no others: 1 to {settings.MOST_IN_A_BATCH}",
        (Reader.UP, Reader.BEAT),
    ),
    Setting(
        "SLA_LEDGER_SIGNER_RPC",
        Topic.CHAIN,
        "keys of this process",
        "`http://` or `https://` URL of a signer that speaks `eth_signTransaction`, such as web3signer or clef. Its "
        "answers are checked before they are used",
        WATCHERS,
        secret=True,
    ),
    Setting(
        "SLA_LEDGER_SIGNER_ISSUER",
        Topic.CHAIN,
        "the key of `SLA_LEDGER_ISSUER_KEY`",
        "address of the issuer, where the signer holds its key",
        WATCHERS,
    ),
    Setting(
        "SLA_LEDGER_SIGNER_DEPLOYER",
        Topic.CHAIN,
        "the key of `SLA_LEDGER_DEPLOYER_KEY`",
        "address of the deployer, where the signer holds its key",
        WATCHERS,
    ),
    Setting(
        "SLA_LEDGER_ISSUER_KEY",
        Topic.CHAIN,
        "`keys/issuer-evm.key`",
        "key of the account that registers and records, as 64 hex digits",
        WATCHERS,
        secret=True,
    ),
    Setting(
        "SLA_LEDGER_DEPLOYER_KEY",
        Topic.CHAIN,
        "`keys/deployer-evm.key`",
        "key of the account that deploys, as 64 hex digits",
        WATCHERS,
        secret=True,
    ),
    Setting(
        "SLA_LEDGER_BROKER",
        Topic.WORKERS,
        "none: the server does the work",
        "Redis (`redis://`, `rediss://`) that carries the messages to the workers. The server does not connect to it",
        EVERYBODY,
        secret=True,
    ),
    Setting(
        "SLA_LEDGER_LEASE_S",
        Topic.WORKERS,
        f"`{settings.DEFAULT_LEASE_S}`",
        f"how long a dead worker's work stays with it; 3 to {settings.MAX_SECONDS}",
        (Reader.UP, Reader.WORKER),
    ),
    Setting(
        "SLA_LEDGER_RING_AGAIN_S",
        Topic.WORKERS,
        f"`{settings.DEFAULT_RING_AGAIN_S}`",
        f"after how long work that no worker took is told again; 1 to {settings.MAX_SECONDS}",
        (Reader.WORKER, Reader.RELAY),
    ),
    Setting(
        "SLA_LEDGER_SCHEDULE_S",
        Topic.WORKERS,
        f"`{settings.DEFAULT_SCHEDULE_S}`",
        f"how often periods are looked at that close by themselves; 1 to {settings.MAX_SECONDS}",
        (Reader.UP, Reader.BEAT),
    ),
    Setting(
        "SLA_LEDGER_WEBHOOKS_PRIVATE",
        Topic.WEBHOOKS,
        "`0`",
        "`1`: webhooks may go to addresses of the own network, and over http",
        (Reader.UP, Reader.WORKER),
    ),
    Setting(
        "SLA_LEDGER_EMBED_ANCESTORS",
        Topic.DASHBOARD,
        "none",
        "pages that may frame `/embed`: origins (`https://portal.example`; `http` on this machine only) or "
        "`SLA_ID=ORIGIN`, with blanks between; without it nobody may",
        SERVER,
    ),
)

BY_NAME: Final = {setting.name: setting for setting in SETTINGS}
