"""Opening a ledger for a command, which says by itself that it goes on where that takes long."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ledger.app.ports.store import Database, Receipt, Transaction
from ledger.cli.output import going_on, note
from ledger.errors import BadInput, DataDirectoryInvalid, NotSequencedYet
from ledger.settings import WorkerSettings
from ledger.wiring.data_directory import open_data_directory
from ledger.wiring.given_keys import needs_of_commands
from ledger.wiring.provers import default_key_cache
from ledger.wiring.services import Services, create_data, open_data


@contextmanager
def opened(data_dir: Path, database_url: str | None, *, create: bool = False) -> Iterator[Services]:
    """The services of a data directory, which others may work meanwhile; with ``create`` it is made where it is not
    there."""
    with going_on():
        services = _services(data_dir, database_url, create=create)
        try:
            yield services
        finally:
            services.close()


@contextmanager
def read_by(data_dir: Path, database_url: str | None, tenant: str) -> Iterator[Transaction]:
    """One state of the ledger, as the tenant sees it."""
    with (
        going_on(),
        open_data_directory(data_dir, database_url=database_url) as data,
        data.database.of_tenant(tenant).read() as tx,
    ):
        yield tx


def _services(data_dir: Path, database_url: str | None, *, create: bool) -> Services:
    workers = WorkerSettings.read(os.environ)
    if create:
        return create_data(
            data_dir, key_cache=default_key_cache(), notify=note, database_url=database_url, workers=workers
        )
    if not data_dir.is_dir():
        raise DataDirectoryInvalid(
            f"{data_dir} is not a directory; make one with: sla-ledger init --data {data_dir}", path=str(data_dir)
        )
    needs = needs_of_commands(data_dir)
    return open_data(data_dir, notify=note, database_url=database_url, workers=workers, needs=needs)


def chosen_sla(agreements: Sequence[Mapping[str, Any]], sla_id: str | None, *, named: str = "with --sla-id") -> str:
    """The agreement that is named, or the only one. Raises ``BadInput``, which says how one is ``named``."""
    if sla_id is not None:
        return sla_id
    if not agreements:
        raise BadInput("no agreement is registered yet; register one with: sla-ledger agreements add FILE --data DIR")
    if len(agreements) != 1:
        known = ", ".join(f"{row['sla_id']} ({row['service']})" for row in agreements[:5])
        raise BadInput(f"{len(agreements)} agreements are registered, so name one {named}: {known}")
    return str(agreements[0]["sla_id"])


def chosen_of(database: Database, sla_id: str | None) -> str:
    """The same of the agreements in a tenant's database."""
    with database.read() as tx:
        return chosen_sla(tx.views.agreements(), sla_id)


def who() -> str:
    """The account that runs the command, for the record."""
    try:
        return f"command line of {getpass.getuser()}"
    except (KeyError, OSError):
        return "command line"


def receipt_document(services: Services, receipt: Receipt) -> dict[str, Any]:
    """A receipt as JSON shows it. ``seq`` is null where no sequencer has given the event its place in time."""
    seq = receipt.seq
    if seq is None:
        try:
            (seq,) = services.database.wait_sequenced([receipt.event_id])
        except NotSequencedYet as error:
            note(error.message)
    return {"event_id": receipt.event_id, "stream": receipt.stream, "version": receipt.version, "seq": seq}
