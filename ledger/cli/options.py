"""Options that commands share: one spelling, one variable of the environment and one help for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def data_option(described: str, *, required: bool = True) -> Option:
    """``--data DIR`` or ``SLA_LEDGER_DATA``, as ``data_dir``."""
    return click.option(
        "--data",
        "data_dir",
        required=required,
        envvar="SLA_LEDGER_DATA",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help=f"{described}  [env: SLA_LEDGER_DATA]",
    )


DATA = data_option("Data directory of the ledger.")
DATABASE = click.option(
    "--database",
    "database_url",
    envvar="DATABASE_URL",
    metavar="URL",
    help="PostgreSQL (postgresql://...) that holds the log instead of a file in DIR.  [env: DATABASE_URL]",
)
TENANT = click.option("--tenant", default="default", show_default=True, help="Whose data this is about.")
SLA_ID = click.option("--sla-id", metavar="ID", help="The agreement. Default: the only one there is.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def is_given(name: str) -> bool:
    """Whether the parameter of the running command stands on the command line, not in the environment alone."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE
