"""``sla-ledger keys``: the log's signing keys. Private halves go into files and never onto a screen.

API keys are apart (``keys api``, ``ledger.cli.api_keys``).
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from ledger.attest.crypto.signing import SEED_BYTES, NoteKey, SigningKey, load_note_key, save_note_key
from ledger.cli.api_keys import api
from ledger.cli.ceremony import ceremony_check, import_zkey, pins
from ledger.cli.options import AS_JSON, DATA, DATABASE, data_option, is_given
from ledger.cli.output import note, print_json, print_table
from ledger.errors import KeyFileUnusable, VerifierKeyInvalid


@click.group()
def keys() -> None:
    """The log's Ed25519 keys; API keys; proving keys from a ceremony."""


@keys.command(epilog="Exit codes: 0 made; 2 the file is there already or cannot be written, or no key has that name.")
@click.option("--name", required=True, help="Key name: the log's origin, such as example.com/log.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="New file for the private key (mode 0600).")
@AS_JSON
def create(name: str, out: Path, as_json: bool) -> None:
    """Make a key, write it to a new file, print its public half (vkey)."""
    key = NoteKey(name, SigningKey(os.urandom(SEED_BYTES)))
    save_note_key(out, key)
    _print_vkey(key.key.vkey(), as_json=as_json)


@keys.command(epilog="Exit codes: 0 shown; 2 the file holds no such key, or no such data directory.")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@data_option("Data directory: its present log key.", required=False)
@DATABASE
@AS_JSON
def show(file: Path | None, data_dir: Path | None, database_url: str | None, as_json: bool) -> None:
    """Print the public half (vkey) of the key in FILE, or of a data directory's present log key."""
    if (file is None and data_dir is None) or (file is not None and is_given("data_dir")):
        raise click.UsageError("name either a key file or --data DIR")
    if file is not None:
        _print_vkey(_load_named(file).key.vkey(), as_json=as_json)
    elif data_dir is not None:
        _print_vkey(str(_described(data_dir, database_url)[-1]["vkey"]), as_json=as_json)


@keys.command("list", epilog="Exit codes: 0 listed; 2 no such data directory.")
@DATA
@DATABASE
@AS_JSON
def list_keys(data_dir: Path, database_url: str | None, as_json: bool) -> None:
    """The log's keys, oldest first, the sizes each signs, and whether its private half is at hand."""
    found = _described(data_dir, database_url)
    if as_json:
        print_json(found)
        return
    rows = [
        [
            str(each["from_size"]),
            "-" if each["until_size"] is None else str(each["until_size"]),
            "yes" if each["held"] else "no",
            str(each["vkey"]),
        ]
        for each in found
    ]
    print_table(["from size", "below", "held", "vkey"], rows)


@keys.command(
    epilog="Exit codes: 0 rotated; 1 the key cannot follow the present one; 2 a key file or the data directory cannot "
    "be used."
)
@DATA
@DATABASE
@click.option("--key", "file", type=click.Path(path_type=Path), help="File of the new key; made anew without it.")
@AS_JSON
def rotate(data_dir: Path, database_url: str | None, file: Path | None, as_json: bool) -> None:
    """Give the log a new key. The old one endorses it, the log records it, and old checkpoints stay valid."""
    from ledger.cli.opening import opened  # takes seconds, which `create` need not wait for

    with opened(data_dir, database_url) as services:
        origin = services.log_signer.origin
        new = load_note_key(file, origin) if file else NoteKey(origin, SigningKey(os.urandom(SEED_BYTES)))
        rotated = services.rotate_log_key(new)
    if as_json:
        print_json({"origin": origin, "vkey": rotated.key.vkey(), "from_size": rotated.from_size})
        return
    click.echo(rotated.key.vkey())
    note(f"{origin}: this key signs every checkpoint from size {rotated.from_size} on")
    note("tell those who pin the log's key, and add the old one to their trust files under log_keys")


for command in (api, ceremony_check, import_zkey, pins):
    keys.add_command(command)


def _print_vkey(vkey: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"vkey": vkey})
        return
    click.echo(vkey)


def _described(data_dir: Path, database_url: str | None) -> list[dict[str, object]]:
    from ledger.app.log.log_keys import log_keys
    from ledger.cli.opening import opened

    with opened(data_dir, database_url) as services:
        with services.database.read() as tx:
            found = log_keys(tx, services.log_signer.identity)
        return [
            {
                "vkey": each.key.vkey(),
                "from_size": each.from_size,
                "until_size": each.until_size,
                "held": services.log_signer.holds(each.key),
            }
            for each in found
        ]


def _load_named(file: Path) -> NoteKey:
    try:
        return load_note_key(file, "")
    except VerifierKeyInvalid as error:
        raise KeyFileUnusable(f"{file} holds a key without a name; name a note key file.", path=str(file)) from error
