"""What holds for every command, whoever adds one: it says how it ends, and it can answer with JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from ledger.cli.main import cli

EXITS = re.compile(r"Exit codes:\s+0\s+\S")


Found = tuple[tuple[str, ...], click.Command]


def commands(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[Found]:
    """Every command that does something, by its words."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None, (*path, name)
        yield from commands(below, (*path, name))


EVERY = dict(commands())


def test_the_walk_meets_the_commands_of_groups_that_load_them_late() -> None:
    assert {("settle",), ("agreements", "amend"), ("keys", "api", "revoke"), ("worker", "relay")} <= set(EVERY)
    assert len(EVERY) >= 50


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_command_documents_its_exit_codes(path: tuple[str, ...]) -> None:
    shown = EVERY[path].get_help(click.Context(EVERY[path], info_name=path[-1]))
    assert EXITS.search(shown), shown
    # Codes are said once, where all commands say them.
    assert shown.count("Exit code") == 1


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_command_answers_with_json_on_request(path: tuple[str, ...]) -> None:
    options = [option for option in EVERY[path].params if "--json" in option.opts]
    assert [option.is_flag for option in options if isinstance(option, click.Option)] == [True]


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_option_is_explained(path: tuple[str, ...]) -> None:
    options = [option for option in EVERY[path].params if isinstance(option, click.Option)]
    assert [option.opts for option in options if not option.help] == []
    assert EVERY[path].help


NOT_A_LEDGERS = {("witness",), ("import",)}
"""The one has a directory of its own, the other makes a new one, which nobody should name by accident."""
WITHOUT_THE_LOG = {("keys", "import"), ("keys", "pins")}
"""Files beside the log are all that these look at."""
READ_THEIR_OWN = {("up",)}
"""Reads its settings from the environment by itself: ledger.settings."""


def option(path: tuple[str, ...], name: str) -> click.Parameter | None:
    return next((found for found in EVERY[path].params if name in found.opts), None)


@pytest.mark.parametrize("path", [path for path in EVERY if option(path, "--data")], ids=" ".join)
def test_every_command_of_a_ledger_finds_it_by_the_same_settings(path: tuple[str, ...]) -> None:
    if path in NOT_A_LEDGERS | READ_THEIR_OWN:
        return
    assert option(path, "--data").envvar == "SLA_LEDGER_DATA"  # type: ignore[union-attr]
    database = option(path, "--database")
    assert (database and database.envvar) == (None if path in WITHOUT_THE_LOG else "DATABASE_URL")
