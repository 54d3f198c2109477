"""The command ``sla-ledger``: finds the module of a subcommand, and turns errors into messages and exit codes.

Subcommands load when they run, so that ``settle`` and ``verify`` start fast and need no extra installed.
To add one, add a line to ``COMMANDS``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click

from ledger.cli.output import visible
from ledger.errors import BadInput, SlaLedgerError, Unavailable


@dataclass(frozen=True, slots=True)
class Subcommand:
    """``target`` is ``module:attribute`` of a click command; ``extra`` names the extra it needs, if any."""

    target: str
    summary: str
    extra: str | None = None


COMMANDS = {
    "settle": Subcommand("ledger.cli.settle:settle", "Settle one period of a request log (pure computation)."),
    "demo": Subcommand("ledger.cli.demo:demo", "Run the main job on a request log, all keys here.", "server,prove"),
    "statements": Subcommand("ledger.cli.statements:statements", "List and show statements.", "server"),
    "violations": Subcommand("ledger.cli.violations:violations", "List violations.", "server"),
    "credits": Subcommand("ledger.cli.credit_changes:credit_lines", "List, take back and book credit lines.", "server"),
    "bundle": Subcommand("ledger.cli.evidence:bundle", "Export the bundle of a statement.", "server,prove"),
    "opening": Subcommand("ledger.cli.evidence:opening", "Export the counts behind a bundle.", "server,prove"),
    "trust": Subcommand("ledger.cli.evidence:trust", "Export pins to check bundles against.", "server,prove"),
    "explain": Subcommand("ledger.cli.explain:explain", "Show every number of a statement or bundle."),
    "verify": Subcommand("ledger.cli.verify:verify", "Verify bundles of statements, offline or with a node."),
    "verify-page": Subcommand("ledger.cli.verify_page:verify_page", "Write a page that verifies bundles in a browser."),
    "equivocation": Subcommand("ledger.cli.equivocation:equivocation", "Prove that a log contradicts itself."),
    "probe": Subcommand("ledger.cli.probe:probe", "Sign what was sealed, as the customer's probe.", "server,prove"),
    "init": Subcommand("ledger.cli.recording:init", "Make a data directory.", "server,prove"),
    "observe": Subcommand(
        "ledger.cli.recording:observe", "Record a log as facts: requests, samples, outages ...", "server,prove"
    ),
    "evaluate": Subcommand("ledger.cli.recording:evaluate", "Judge a period that is not over.", "server,prove"),
    "budget": Subcommand("ledger.cli.budget:budget", "Show error budgets: left, burn rate, forecast.", "server"),
    "close": Subcommand("ledger.cli.recording:close", "Close a period, which settles it.", "server,prove"),
    "pending": Subcommand("ledger.cli.pending:pending", "Show periods that are not closed, and why.", "server"),
    "data-quality": Subcommand("ledger.cli.quality:data_quality", "Show rows that block settlement.", "server"),
    "exclusions": Subcommand(
        "ledger.cli.exclusions:exclusions", "Exclude time from the counts: maintenance, carve-outs.", "server,prove"
    ),
    "charges": Subcommand("ledger.cli.claiming:charges", "Hand in the charges of a period.", "server,prove"),
    "claims": Subcommand("ledger.cli.claiming:claims", "Claim credits, and list claims.", "server,prove"),
    "up": Subcommand("ledger.cli.up:up", "Serve a data directory over HTTP.", "server,prove"),
    "keys": Subcommand("ledger.cli.keys:keys", "The log's signing keys, and API keys.", "server,prove"),
    "chain": Subcommand("ledger.cli.chain:chain", "The registry on a node's chain, its roles, roots.", "server,prove"),
    "worker": Subcommand("ledger.cli.worker:worker", "Work a ledger in processes of their own.", "server,prove"),
    "outbox": Subcommand("ledger.cli.outbox:outbox", "Look at work to be done, retry what was parked.", "server"),
    "collect": Subcommand("ledger.cli.collect:collect", "Scrape a metrics endpoint into the ledger.", "server,prove"),
    "scrape": Subcommand("ledger.cli.scrape:scrape", "Record what endpoints have counted as facts.", "server,prove"),
    "proof": Subcommand("ledger.cli.proof:proof", "Export the inclusion proof of a log entry.", "server,prove"),
    "witness": Subcommand("ledger.cli.witness:witness", "Watch logs and cosign their checkpoints.", "server"),
    "health": Subcommand("ledger.cli.health:health", "Say whether the work behind a ledger goes on.", "server"),
    "fsck": Subcommand("ledger.cli.maintenance:fsck_command", "Check everything a data directory holds.", "server"),
    "rebuild": Subcommand("ledger.cli.maintenance:rebuild", "Make the views anew from the events.", "server"),
    "erase": Subcommand("ledger.cli.maintenance:erase", "Erase the payload of one event.", "server"),
    "export": Subcommand("ledger.cli.transfer:export_command", "Write the whole log to a file.", "server"),
    "export-credits": Subcommand("ledger.cli.credits:export_credits", "Write the credit lines as CSV.", "server"),
    "import": Subcommand("ledger.cli.transfer:import_command", "Make a data directory from an export.", "server"),
    "agreements": Subcommand("ledger.cli.agreements:agreements", "Check and register agreements.", "server,prove"),
    "generate": Subcommand("ledger.cli.generate:generate", "Write the generated files of a clone, or compare them."),
}

EPILOG = """\b
Exit codes:
  0  done (a withheld statement is done, too)
  1  done, but a check failed (fsck: findings), or --strict met a row that could not be used
  2  the input cannot be used; nothing was written
  3  verify: consistent, but not pinned by a trust file, or not settled on the chain that was asked
"""


class LazyGroup(click.Group):
    """A group whose commands stand in ``COMMANDS`` and are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise _not_installed(cmd_name, error) from error
        if not isinstance(found, click.Command):
            raise TypeError(f"{entry.target} is not a command")
        return found

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            # Commands import what is heavy when they need it.
            raise _not_installed(ctx.invoked_subcommand or "", error) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _not_installed(command: str, error: ModuleNotFoundError) -> Exception:
    """What to install for a command; the error itself where the missing module is ours or no extra has it."""
    entry = COMMANDS.get(command)
    if entry is None or entry.extra is None or (error.name or "").partition(".")[0] in ("ledger", "api"):
        return error
    return click.ClickException(
        f"{command} needs {error.name}, which is not installed: pip install 'sla-ledger[{entry.extra}]'"
    )


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sla-ledger")
@click.pass_context
def cli(context: click.Context) -> None:
    """An event-sourced SLA ledger: credits that follow, provably, from committed telemetry."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Errors become messages here and nowhere else."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = cli.main(args=given, prog_name="sla-ledger", standalone_mode=False)
        sys.stdout.flush()
    except SlaLedgerError as error:
        return _report(error, as_json="--json" in given)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("sla-ledger: stopped", err=True)
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`| head`).
        _drop_output()
        return 141
    except UnicodeEncodeError:
        # Bytes that are no UTF-8 stand in an argument as halves of surrogate pairs; only names of files may have such.
        odd = next((each for each in given if each != each.encode(errors="replace").decode()), None)
        if odd is None:
            raise
        return _report(BadInput(f"{odd[:80]!r} is no UTF-8 text; write it in UTF-8"), as_json="--json" in given)
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
        where = error.filename or "the output"
        message = f"{where}: {error.strerror or error}"
        return _report(Unavailable(message, path=str(where)), as_json="--json" in given)
    return result if isinstance(result, int) else 0


def _report(error: SlaLedgerError, *, as_json: bool) -> int:
    if as_json:
        click.echo(json.dumps(error.as_dict(), indent=2, default=str), err=True)
    else:
        click.echo(f"sla-ledger: {visible(error.message)}", err=True)
    return error.exit_code


def _drop_output() -> None:
    """Keep the interpreter from trying again, when it ends, to write what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
