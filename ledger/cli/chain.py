"""``sla-ledger chain``: the registry contract on the chain of a node, and what its logs hold.

The embedded chain needs no command.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.app.chain.status import events_of_others
from ledger.cli.chain_roots import record, roots
from ledger.cli.opening import opened
from ledger.cli.options import AS_JSON, DATA, DATABASE
from ledger.cli.output import note, print_json
from ledger.cli.registry_roles import COMMANDS, FURTHER_CHAIN, of_node
from ledger.wiring.data_directory import open_data_directory

if TYPE_CHECKING:
    from ledger.wiring.chain import Watched

OTHERS = 3


@click.group()
def chain() -> None:
    """Deploy the registry on the chain of SLA_LEDGER_CHAIN_RPC, see what its logs hold, and work its roles."""


for _command in COMMANDS:
    chain.add_command(_command)


@chain.command(
    short_help="Deploy the registry.",
    epilog="Exit codes: 0 deployed, now or before; 1 the node cannot be reached, or refuses (no money on an account); "
    "2 no node is named, or no such data directory.",
)
@DATA
@DATABASE
@FURTHER_CHAIN
@click.option("--fund", is_flag=True, help="On a local test node: give both accounts its test money first.")
@AS_JSON
def deploy(data_dir: Path, database_url: str | None, chain_id: str | None, fund: bool, as_json: bool) -> None:
    """Deploy the registry with the directory's deployer key, unless it is there, and say where it stands.

    The address follows from that key: every process with the same keys finds the registry without being told. The
    deployer and the issuer need money on the chain; without, the command names the addresses to fund.
    """
    with opened(data_dir, database_url) as services:
        node = of_node(services, chain_id)
        if fund:
            node.fund()
        result = {**node.deploy(), "confirmations": node.confirmations}
    if as_json:
        print_json(result)
        return
    click.echo(result["registry"])
    what = "deployed" if result["deployed"] else "was there already"
    note(f"the registry {what} on chain {result['chain_id']}")
    note(f"deployer {result['deployer']} and issuer {result['issuer']} pay for what is sent; keep money on both")


@chain.command(
    short_help="Read the registry's own logs.",
    epilog="Exit codes: 0 nobody else did anything that concerns this ledger; 1 the node cannot be reached, or "
    "refuses; 2 no node is named, no registry stands, or no such data directory; 3 somebody else did (see the events).",
)
@DATA
@DATABASE
@click.option("--from-block", type=click.IntRange(min=0), default=0, show_default=True, help="First block to look at.")
@AS_JSON
@click.pass_context
def watch(context: click.Context, data_dir: Path, database_url: str | None, from_block: int, as_json: bool) -> None:
    """Read the registry's own logs: what stands there of this ledger, and what others did that concerns it.

    Such as a statement that the customer recorded first, an agreement somebody else registered, or a verifier that was
    retired. Every stored transaction is looked for again and shown as submitted, included, safe, finalized or failed.
    """
    with opened(data_dir, database_url) as services:
        note("reading the registry's logs")
        watched = of_node(services).watch(from_block)
    if as_json:
        print_json(_shown(watched))
    else:
        for event in watched.events:
            whose = "own" if event.own else f"by others, concerns {event.concerns or 'others alone'}"
            click.echo(f"block {event.block_number}  {event.name}  {event.tx_hash}  {whose}")
        for state, count in Counter(each.state for each in watched.transactions).items():
            click.echo(f"transactions {state}: {count}")
    if watched.of_others:
        context.exit(OTHERS)


@chain.command(
    short_help="List what others did at the registry.",
    epilog="Exit codes: 0 listed; 1 the database cannot be reached; 2 no such data directory.",
)
@DATA
@DATABASE
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many, the newest first."
)
@AS_JSON
def events(data_dir: Path, database_url: str | None, limit: int, as_json: bool) -> None:
    """List what others did at the registry, as the watcher has logged it. No node is asked."""
    with open_data_directory(data_dir, database_url=database_url) as data, data.database.read() as tx:
        found = [{**event.payload, "seq": event.seq} for event in events_of_others(tx, limit)]
    if as_json:
        print_json({"events": found})
        return
    if not found:
        note("nothing that others did is in the log")
    for each in found:
        about = each["sla_id"] or "all who use the registry"
        click.echo(f"block {each['block_number']}  {each['name']}  {each['tx_hash']}  concerns {about}")


def _shown(watched: Watched) -> dict[str, Any]:
    return {
        "chain_id": str(watched.chain_id),
        "registry": watched.registry,
        "from_block": watched.from_block,
        "to_block": watched.to_block,
        "events": [
            {
                "name": event.name,
                "arguments": dict(event.arguments),
                "tx_hash": event.tx_hash,
                "block_number": event.block_number,
                "block_hash": event.block_hash,
                "log_index": event.log_index,
                "own": event.own,
                "concerns": event.concerns,
            }
            for event in watched.events
        ],
        "transactions": [
            {
                "purpose": each.transaction.purpose,
                "tx_hash": each.transaction.tx_hash,
                "sender": each.transaction.sender,
                "nonce": each.transaction.nonce,
                "attempt": each.transaction.attempt,
                "state": each.state,
                "block_number": each.block_number,
            }
            for each in watched.transactions
        ],
    }


chain.add_command(roots)
chain.add_command(record)
