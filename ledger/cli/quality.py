"""``sla-ledger data-quality``: rows that say what no honest source says, and block the settlement of their period."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.app.facts.quality import QualityDesk, QualityFault
from ledger.cli.opening import chosen_of
from ledger.cli.options import AS_JSON, DATA, DATABASE, SLA_ID, TENANT
from ledger.cli.output import going_on, print_json, print_table
from ledger.domain.time.instant import format_instant_ns
from ledger.ingest.facts import read_facts
from ledger.wiring.data_directory import open_data_directory

_SAID = ("sample_id", "line", "indicator", "field", "value", "message")


@click.command("data-quality", epilog="Exit codes: 0 nothing is open; 1 some rows block a period; 2 no such agreement.")
@DATA
@SLA_ID
@TENANT
@DATABASE
@AS_JSON
def data_quality(data_dir: Path, sla_id: str | None, tenant: str, database_url: str | None, as_json: bool) -> int:
    """Show rows that cannot be: more good than all, counts below 0, an outage that ends before it begins.

    Such a row blocks its period until a usable row is handed in in its place. Open ones come first.
    """
    with going_on(), open_data_directory(data_dir, database_url=database_url) as data:
        database = data.database.of_tenant(tenant)
        found = QualityDesk(database, read_facts).of(chosen_of(database, sla_id))
    still_open = sum(not fault.resolved for fault in found)
    if as_json:
        print_json({"open": still_open, "items": [_document(fault) for fault in found]})
        return 1 if still_open else 0
    print_table(
        ("state", "period", "sample", "line", "at", "says", "wrong"),
        [
            (
                fault.state,
                fault.period,
                fault.row["sample_id"],
                str(fault.row["line"]),
                format_instant_ns(int(fault.row["at_ns"])),
                fault.row["value"],
                f"{fault.row['field']}: {fault.row['message']}",
            )
            for fault in found
        ],
    )
    return 1 if still_open else 0


def _document(fault: QualityFault) -> dict[str, object]:
    return {
        "state": fault.state,
        "sla_id": fault.sla_id,
        "source": fault.source,
        "period": fault.period,
        "digest": fault.digest,
        "reason": fault.reason,
        **{name: fault.row[name] for name in _SAID},
        "at": format_instant_ns(int(fault.row["at_ns"])),
        "seq": fault.event.seq,
    }
