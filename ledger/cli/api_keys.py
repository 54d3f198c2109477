"""``sla-ledger keys api``: keys that are presented to the API. A key is shown once, when it is made."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ledger.app.access import Role, check_tenant
from ledger.app.keys import key_principal, make_key
from ledger.app.ports.keys import ApiKey
from ledger.app.ports.store import Database
from ledger.cli.options import AS_JSON, DATA, DATABASE, TENANT
from ledger.cli.output import note, print_json, print_table
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns


class _SystemRandomness:
    def bytes(self, count: int) -> bytes:
        return os.urandom(count)


@click.group()
def api() -> None:
    """Make, list and revoke API keys."""


@api.command(epilog="Exit codes: 0 made; 2 the tenant, the end or the data directory cannot be used.")
@DATA
@DATABASE
@TENANT
@click.option("--role", type=click.Choice([str(role) for role in Role]), required=True, help="What it may do.")
@click.option("--sla-id", "sla_ids", multiple=True, help="Limit it to reading this agreement; may be repeated.")
@click.option("--expires", metavar="INSTANT", help="Its end, such as 2027-01-01T00:00:00Z; without one it has none.")
@click.option("--label", default="", help="For people: who has it.")
@AS_JSON
def create(
    data_dir: Path,
    database_url: str | None,
    tenant: str,
    role: str,
    sla_ids: tuple[str, ...],
    expires: str | None,
    label: str,
    as_json: bool,
) -> None:
    """Make a key and print it: this once, since only its hash is kept."""
    expires_at_ns = None if expires is None else parse_instant_ns(expires)
    with _opened(data_dir, database_url, tenant) as storage, storage.begin() as tx:
        key, text = make_key(
            tx,
            tenant=tenant,
            role=Role(role),
            now_ns=time.time_ns(),
            randomness=_SystemRandomness(),
            label=label,
            sla_ids=sla_ids,
            expires_at_ns=expires_at_ns,
        )
    if as_json:
        print_json({"key": text, **_described(key)})
        return
    click.echo(text)
    note(f"key {key.key_id}: {role} of tenant {tenant}; keep it now, it cannot be shown again")


@api.command("list", epilog="Exit codes: 0 listed; 2 no such data directory.")
@DATA
@DATABASE
@TENANT
@AS_JSON
def list_keys(data_dir: Path, database_url: str | None, tenant: str, as_json: bool) -> None:
    """A tenant's keys, oldest first, without their secrets."""
    with _opened(data_dir, database_url, tenant) as storage, storage.read() as tx:
        found = [_described(key) for key in tx.keys.all()]
    if as_json:
        print_json(found)
        return
    columns = ("key_id", "role", "state", "created", "expires", "label")
    print_table(list(columns), [[str(each[name] or "-") for name in columns] for each in found])


@api.command(epilog="Exit codes: 0 revoked, now or before; 1 no such key; 2 no such data directory.")
@DATA
@DATABASE
@TENANT
@click.argument("key_id")
@AS_JSON
def revoke(data_dir: Path, database_url: str | None, tenant: str, key_id: str, as_json: bool) -> None:
    """Revoke the key KEY_ID for good, and every guest token that was made with it."""
    with _opened(data_dir, database_url, tenant) as storage, storage.begin() as tx:
        key = tx.keys.revoke(key_id, time.time_ns())
    if as_json:
        print_json(_described(key))
        return
    click.echo(f"revoked {key.key_id}")


@contextmanager
def _opened(data_dir: Path, database_url: str | None, tenant: str) -> Iterator[Database]:
    from ledger.wiring.data_directory import open_data_directory  # takes a while, which a mistyped option need not

    check_tenant(tenant)
    with open_data_directory(data_dir, database_url=database_url) as data:
        yield data.database.of_tenant(tenant)


def _described(key: ApiKey) -> dict[str, Any]:
    now_ns = time.time_ns()
    expired = key.expires_at_ns is not None and key.expires_at_ns <= now_ns
    return {
        "key_id": key.key_id,
        "tenant": key.tenant,
        "role": key.role,
        "state": "revoked" if key.revoked_at_ns is not None else "expired" if expired else "valid",
        "label": key.label,
        "sla_ids": list(key.sla_ids),
        "scopes": sorted(key_principal(key).scopes),
        "created": format_instant_ns(key.created_at_ns),
        "expires": None if key.expires_at_ns is None else format_instant_ns(key.expires_at_ns),
        "revoked": None if key.revoked_at_ns is None else format_instant_ns(key.revoked_at_ns),
    }
