"""``sla-ledger chain verifiers``, ``roles``, ``retire``, ``pause``, ``unpause``, ``grant`` and ``revoke``.

What the holders of a registry's roles do, with the deployer's key of a data directory, on the chain of a node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.cli.opening import opened
from ledger.cli.options import AS_JSON, DATA, DATABASE
from ledger.cli.output import note, print_json, print_table
from ledger.domain.time.instant import SECOND_NS, format_instant_ns
from ledger.errors import BadInput, SettingInvalid

if TYPE_CHECKING:
    from ledger.anchor.administration import Administration, Done, VerifierState
    from ledger.wiring.chain import RpcChain
    from ledger.wiring.services import Services

_LOOK = "Exit codes: 0 shown; 1 the node cannot be reached; 2 no node is named, no registry, or no such data directory."
_DEED = (
    "Exit codes: 0 it stands so, now or before; 1 refused (the deployer's account lacks the role: the message names "
    "who holds it), no such circuit, or the node cannot be reached; 2 not valid, not confirmed, no node, no registry."
)
_ROLE = click.Choice(["admin", "registrar", "pauser"])
FURTHER_CHAIN = click.option(
    "--chain", "chain_id", metavar="ID", help="On a further chain of root-chains.json instead of the home chain."
)
_CIRCUIT_ID = re.compile(r"(?:0x)?([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class _Where:
    """Whose registry, and on which chain."""

    data_dir: Path
    database_url: str | None
    chain_id: str | None


def _on_a_registry(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say where, as one argument, and ``--json``."""

    @DATA
    @DATABASE
    @FURTHER_CHAIN
    @AS_JSON
    @wraps(command)
    def with_where(*, data_dir: Path, database_url: str | None, chain_id: str | None, **others: Any) -> None:
        command(where=_Where(data_dir, database_url, chain_id), **others)

    return with_where


@click.command(epilog=_LOOK)
@_on_a_registry
def verifiers(where: _Where, as_json: bool) -> None:
    """List the verifiers of the registry and the state of each.

    in use; retired, which is for good: the registry records no statement under that circuit any more; or changed: the
    code at its address is not what was added, and the registry does not ask it.
    """
    with _administration(where) as administration:
        found = administration.verifiers()
        on_chain, registry = administration.location
    if as_json:
        print_json({"chain_id": str(on_chain), "registry": registry, "verifiers": [_shown(each) for each in found]})
        return
    rows = [
        (each.circuit_id.hex(), each.verifier, str(each.added_in_block), _state(each), _retired_at(each) or "")
        for each in found
    ]
    print_table(("circuit", "verifier", "block", "state", "retired at"), rows)


@click.command(short_help="Show who holds which role, and a pause.", epilog=_LOOK)
@_on_a_registry
def roles(where: _Where, as_json: bool) -> None:
    """Show who holds the registry's roles, and whether it is paused.

    The admin grants and revokes, the registrar adds and retires verifiers, the pauser holds up registering and
    publishing. None of them records or registers for a party.
    """
    with _administration(where) as administration:
        holders, paused = administration.holders(), administration.paused()
        on_chain, registry = administration.location
    if as_json:
        print_json({"chain_id": str(on_chain), "registry": registry, "paused": paused, "holders": holders})
        return
    for role, accounts in holders.items():
        click.echo(f"{role}: {', '.join(accounts) or 'nobody'}")
    click.echo("paused: registering and publishing are held up" if paused else "not paused")


@click.command(short_help="Retire a circuit's verifier for good (registrar).", epilog=_DEED)
@click.argument("circuit_id", metavar="CIRCUIT_ID")
@click.option("--yes", is_flag=True, help="Do it. Nothing takes it back.")
@_on_a_registry
def retire(circuit_id: str, yes: bool, where: _Where, as_json: bool) -> None:
    """Retire the verifier of a circuit whose key or circuit has turned out unsound, for good (registrar).

    From that block on the registry records no statement that is proved under it, of past periods neither: under such a
    circuit a false statement passes as easily as a true one. What is recorded stays recorded.
    """
    digits = _CIRCUIT_ID.fullmatch(circuit_id.lower())
    if digits is None:
        raise BadInput(f"{circuit_id} is no circuit id: 64 hex digits, as `chain verifiers` shows them")
    if not yes:
        raise BadInput(
            f"retiring the verifier of circuit {digits[1]} is for good: nothing proved under it is ever recorded "
            "again, of past periods neither. If that is meant, add --yes"
        )
    _deed(where, as_json, lambda each: each.retire(bytes.fromhex(digits[1])), "retired")


@click.command(epilog=_DEED)
@_on_a_registry
def pause(where: _Where, as_json: bool) -> None:
    """Hold up registering and publishing (pauser). Recording, with which a party disputes, goes on."""
    _deed(where, as_json, lambda each: each.pause(), "paused")


@click.command(epilog=_DEED)
@_on_a_registry
def unpause(where: _Where, as_json: bool) -> None:
    """End a pause (pauser)."""
    _deed(where, as_json, lambda each: each.unpause(), "not paused")


@click.command(epilog=_DEED)
@click.argument("role", type=_ROLE)
@click.argument("account", metavar="ADDRESS")
@_on_a_registry
def grant(role: str, account: str, where: _Where, as_json: bool) -> None:
    """Let an account hold a role (admin)."""
    address = _address(account)
    _deed(where, as_json, lambda each: each.grant(role, address), f"{address} holds {role}")


@click.command(epilog=_DEED)
@click.argument("role", type=_ROLE)
@click.argument("account", metavar="ADDRESS")
@_on_a_registry
def revoke(role: str, account: str, where: _Where, as_json: bool) -> None:
    """Take a role from an account (admin). The only admin stays one: nobody could ever grant a role again."""
    address = _address(account)
    _deed(
        where,
        as_json,
        lambda each: each.revoke(role, address),
        f"{address} does not hold {role}",
    )


COMMANDS = (verifiers, roles, retire, pause, unpause, grant, revoke)


def of_node(services: Services, chain_id: str | None = None) -> RpcChain:
    """The chain of the node that the settings name, or a further one. Raises ``SettingInvalid`` where none is named."""
    from ledger.wiring.chain import RpcChain

    if chain_id is not None:
        further = services.root_chains.get(chain_id)
        if further is None:
            known = ", ".join(services.root_chains) or "none"
            raise SettingInvalid(
                f"no further chain {chain_id} is named; root-chains.json names {known}",
                setting="SLA_LEDGER_ROOT_CHAINS",
            )
        return further.registrar
    home = services.chain if services.chain_settings.rpc_url is not None else None
    if not isinstance(home, RpcChain):
        raise SettingInvalid(
            "the embedded chain deploys its registry by itself, and nobody else is on it; name a node by "
            "SLA_LEDGER_CHAIN_RPC",
            setting="SLA_LEDGER_CHAIN_RPC",
        )
    return home


@contextmanager
def _administration(where: _Where) -> Iterator[Administration]:
    with opened(where.data_dir, where.database_url) as services:
        yield of_node(services, where.chain_id).administration()


def _deed(
    where: _Where,
    as_json: bool,
    deed: Callable[[Administration], Done],
    what: str,
) -> None:
    with _administration(where) as administration:
        done = deed(administration)
        on_chain, registry = administration.location
    if as_json:
        print_json(
            {
                "chain_id": str(on_chain),
                "registry": registry,
                "changed": done.tx_hash is not None,
                "tx_hash": done.tx_hash,
            }
        )
        return
    click.echo(what if done.tx_hash is None else f"{what}: transaction {done.tx_hash}")
    if done.tx_hash is None:
        note("it stood so before; nothing was sent")


def _address(text: str) -> str:
    from eth_utils import is_address, to_checksum_address

    if not is_address(text):
        raise BadInput(f"{text} is no address: 0x and 40 hex digits, with the right capitals if there are any")
    return to_checksum_address(text)


def _state(each: VerifierState) -> str:
    if each.retired_at_s is not None:
        return "retired"
    return "in use" if each.code_unchanged else "changed"


def _retired_at(each: VerifierState) -> str | None:
    return None if each.retired_at_s is None else format_instant_ns(each.retired_at_s * SECOND_NS)


def _shown(each: VerifierState) -> dict[str, Any]:
    return {
        "circuit_id": each.circuit_id.hex(),
        "verifier": each.verifier,
        "added_in_block": each.added_in_block,
        "state": _state(each),
        "retired_at": _retired_at(each),
    }
