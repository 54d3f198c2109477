"""``sla-ledger chain``: the registry contract on the chain of a node. The embedded chain needs no command."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.cli.output import note, print_json
from ledger.errors import SettingInvalid


@click.group()
def chain() -> None:
    """Deploy the registry on the chain of SLA_LEDGER_CHAIN_RPC."""


@chain.command(
    epilog="Exit codes: 0 deployed, now or before; 1 the node cannot be reached, or refuses (no money on an account); "
    "2 no node is named, or no such data directory."
)
@click.option(
    "--data",
    "data_dir",
    envvar="SLA_LEDGER_DATA",
    type=click.Path(path_type=Path),
    required=True,
    help="Data directory, as `init` makes it.  [env: SLA_LEDGER_DATA]",
)
@click.option("--database", metavar="URL", envvar="DATABASE_URL", help="PostgreSQL that holds the log, if one does.")
@click.option("--fund", is_flag=True, help="On a local test node: give both accounts its test money first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def deploy(data_dir: Path, database: str | None, fund: bool, as_json: bool) -> None:
    """Deploy the registry with the directory's deployer key, unless it is there, and say where it stands.

    The address follows from that key: every process with the same keys finds the registry without being told. The
    deployer and the issuer need money on the chain; without, the command names the addresses to fund.
    """
    from ledger.wiring import open_data  # takes seconds
    from ledger.wiring.chain import RpcChain

    services = open_data(data_dir, notify=note, database_url=database)
    try:
        opened = services.chain if services.chain_settings.rpc_url is not None else None
        if not isinstance(opened, RpcChain):
            raise SettingInvalid(
                "the embedded chain deploys its registry by itself; name a node by SLA_LEDGER_CHAIN_RPC",
                setting="SLA_LEDGER_CHAIN_RPC",
            )
        if fund:
            opened.fund()
        result = {**opened.deploy(), "confirmations": opened.confirmations}
    finally:
        services.close()
    if as_json:
        print_json(result)
        return
    click.echo(result["registry"])
    what = "deployed" if result["deployed"] else "was there already"
    note(f"the registry {what} on chain {result['chain_id']}")
    note(f"deployer {result['deployer']} and issuer {result['issuer']} pay for what is sent; keep money on both")
