"""``sla-ledger explain`` shows each step; what it shows adds up."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledger.app.judgement.violations import record_violations
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.settlement.statements import issue_statement
from ledger.attest.crypto.signing import SigningKey, save_key
from ledger.cli.explain_text import _lines, print_explanation
from ledger.cli.main import main
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Cell
from ledger.store.database import SqliteDatabase
from ledger.wiring.marker import DATA_FORMAT
from tests.support.office import Office
from tests.unit.app.conftest import find_requests, log, make_desk, read_rows, row
from tests.unit.app.test_settling import record
from tests.unit.domain.samples import document
from tests.unit.domain.test_budget import judged
from tests.unit.domain.test_explanation import BY_FACTOR, BY_TABLE, ROWS, explained, terms

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


def test_every_step_of_a_proved_breach_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    payload = json.loads((VECTORS / "bundle.json").read_text())["statement"]["payload"]
    assert main(["explain", str(VECTORS / "bundle.json")]) == 0
    shown = capsys.readouterr().out
    for result in payload["objectives"]:
        assert f"{result['good']}/{result['valid']}" in shown
    whole, cents = divmod(int(payload["credit"]["minor_units"]), 100)
    assert f"the credit: {whole}.{cents:02} {payload['credit']['currency']}" in shown


def test_a_credit_of_incidents_says_which_proof_is_of_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compensation = document("agreement-impact.yaml")["compensation"]
    office = Office("agreement-impact.yaml", compensation=compensation).at_the_end()
    (tmp_path / "bundle.json").write_bytes(office.hand_in(row("slow", ttft_s=0.9)).close().evidence().bundle)
    assert main(["explain", str(tmp_path / "bundle.json")]) == 0
    shown = capsys.readouterr().out
    assert "Impact: valid requests of each incident" in shown
    assert "Two proofs show it: one the tiers' exact amount, the other, by incidents_64, this credit." in shown
    assert main(["explain", str(VECTORS / "bundle.json")]) == 0
    assert "Two proofs" not in capsys.readouterr().out


def test_the_page_shows_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(VECTORS / "bundle.json")]) == 0
    shown = capsys.readouterr().out
    page = (VECTORS.parents[1] / "docs" / "explain.md").read_text()
    beginning, end = re.findall(r"```\n(.*?)```", page, re.DOTALL)
    assert shown.startswith(beginning)
    assert shown.endswith(end)


def test_a_withheld_statement_says_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(VECTORS / "bundle_withheld.json")]) == 0
    assert "Withheld: the agreement asks for 99 % of the windows" in capsys.readouterr().out


def test_json_is_the_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json", str(VECTORS / "bundle.json")]) == 0
    payload = json.loads((VECTORS / "bundle.json").read_text())["statement"]["payload"]
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == "sla-ledger/explanation/v1"
    assert found["credit"]["minor_units"] == payload["credit"]["minor_units"]
    # A bundle has no counts of windows.
    assert found["objectives"][0]["units"] is None


@pytest.mark.parametrize(
    "trace",
    [{}, {"tiers": 1}, {"tiers": [], "base": "x"}, {"tiers": [{"objective": "availability", "tier": 1}]}],
)
def test_a_trace_that_is_none_is_named_not_a_traceback(
    trace: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = json.loads((VECTORS / "bundle.json").read_text())
    bundle["statement"]["payload"]["trace"] = trace
    path = tmp_path / "bundle.json"
    path.write_bytes(canonical_bytes(bundle))
    assert main(["explain", str(path)]) == 2
    assert "statement.payload.trace" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("member", "value"),
    [("base", {"": None}), ("combined_bps", {}), ("cap", "no"), ("tier_amount", {"denominator": "1"})],
)
def test_a_member_of_the_trace_that_nobody_can_print_is_named(
    member: str, value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = json.loads((VECTORS / "bundle.json").read_text())
    bundle["statement"]["payload"]["trace"][member] = value
    path = tmp_path / "bundle.json"
    path.write_bytes(canonical_bytes(bundle))
    assert main(["explain", str(path)]) == 2
    shown = capsys.readouterr()
    assert "statement.payload.trace: is not the trace" in shown.err
    assert not shown.out


def test_a_file_that_is_no_bundle_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert main(["explain", str(tmp_path / "x.json")]) == 2
    assert "x.json" in capsys.readouterr().err


def test_a_bundle_is_explained_with_nothing_installed_but_the_verifier() -> None:
    program = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('sqlalchemy', 'litestar', 'web3', 'alembic', 'strawberry', 'celery'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from ledger.cli.main import main\n"
        f"sys.exit(main(['explain', {str(VECTORS / 'bundle.json')!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the credit: 2000.00 USD" in done.stdout


def test_a_rule_for_lost_time_is_shown_with_its_factor_or_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    factor = {**BY_FACTOR, "per": "incident", "longer_than": "PT5M", "round_up_to": "PT1H", "incident_cap": "12.5 %"}
    shown = []
    for rule in (factor, {**BY_TABLE, "rows": ROWS}):
        agreement = terms("downtime_minutes-v1", [rule], base="1000.00", minimum="0", caps={})
        document, _ = explained(agreement, judged(agreement, [*[(0, 7)] * 30, *[(10, 0)] * 1410]))
        print_explanation(document)
        shown.append(capsys.readouterr().out)
    assert "factor 2.5, incidents longer than 300 s, each incident rounded up to 3600 s, at most 12.5 %" in shown[0]
    # 75 minutes are two hours, of 24.
    assert "1800 s lost: 83.33 USD and 1/3 of 1/100 USD" in shown[0]
    assert "row 1: 300 s to less than 3600 s earns 14400 s" in shown[1]
    assert "row 2: 3600 s and more earns 86400 s" in shown[1]
    assert "1800 s lost, row 1: 166.66 USD and 2/3 of 1/100 USD" in shown[1]


def test_recorded_charges_are_told_line_by_line_and_of_each_objective_as_its_base(
    capsys: pytest.CaptureFixture[str],
) -> None:
    agreement = terms("total_ratio", base="1000.00", minimum="0", caps={})
    document, _ = explained(agreement, judged(agreement, [(9, 1)] * 1440))
    base, tier, *_ = document["credit"]["steps"]
    del base["result"]
    lines = [{"amount": "8000.00", "kind": kind, "service": "example-chat"} for kind in ("recurring", "one_time")]
    base["charges"] = {"period": "2023-06-14/P1D", "lines": lines}
    tier["base"] = {"amount": {"numerator": "800000", "denominator": "1"}, "lines": [0]}
    print_explanation(document)
    shown = capsys.readouterr().out
    assert "line 1: (amount 8000.00, kind one_time, service example-chat)" in shown
    assert "its base: 8000.00 USD (lines 0)\n       pays " in shown


HOUR_NS = 3600 * 10**9
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def settled_day(folder: Path, *batches: tuple[bytes, Interval]) -> str:
    """Makes a data directory with one settled day of these logs, each complete for its span; the statement's id."""
    desk = make_desk()
    (folder / "keys").mkdir()
    save_key(folder / "keys" / "log.key", SigningKey(b"\x09" * 32))
    (folder / "data.json").write_bytes(canonical_bytes({"format": DATA_FORMAT, "genesis_timestamp_s": 1}))
    database = SqliteDatabase(folder / "ledger.db", desk.clock, desk.randomness)
    stored = replace(desk, database=database)
    for data, span in batches:
        record(stored, data, span)
    registered = stored.register()
    with database.begin() as tx:
        judged = evaluate_windows(tx, registered, desk.period, read_rows=read_rows)
        record_violations(
            tx,
            registered,
            desk.period,
            judged,
            find_evidence=lambda *_: (),
            find_requests=find_requests,
            now_ns=desk.period.interval.end_ns,
        )
        issued = issue_statement(
            tx,
            registered,
            desk.period,
            judged,
            attestor=desk.attestor,
            collector=desk.collector,
            randomness=desk.randomness,
            now_ns=desk.period.interval.end_ns,
        )
    database.close()
    return issued.id


@pytest.fixture
def ledger(tmp_path: Path) -> tuple[Path, str]:
    """A data directory with one settled day: the hours 3 and 4 failed, hour 20 has no data."""
    start_ns = make_desk().period.interval.start_ns
    batches = []
    for hour in range(24):
        if hour == 20:
            continue
        bodies = [row(f"g{hour}", at=f"2023-06-14T{hour:02}:10:00Z")]
        if hour in (3, 4):
            bodies.append(row(f"b{hour}", at=f"2023-06-14T{hour:02}:20:00Z", error_code=500, trace_id=TRACE))
        batches.append((log(*bodies), Interval(start_ns + hour * HOUR_NS, start_ns + (hour + 1) * HOUR_NS)))
    return tmp_path, settled_day(tmp_path, *batches)


def test_a_statement_of_a_ledger_is_told_down_to_its_windows(
    ledger: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    data, name = ledger
    assert main(["explain", name, "--data", str(data)]) == 0
    shown = capsys.readouterr().out
    strip = shown.splitlines()[1]
    # Plain letters, because nobody watches.
    assert strip == "ooo" + "xx" + "o" * 15 + "n" + "ooo"
    assert "no data: 1 windows, 2023-06-14T20:00:00Z to 2023-06-14T21:00:00Z" in shown
    assert "23/25 requests (2 bad)" in shown
    assert "Withheld: the agreement asks for 99 %" in shown
    assert f"{name.rpartition('.v')[0]}.availability.w3" in shown
    assert "b3, b4" in shown


def test_as_json_with_all_windows_and_the_evidence(
    ledger: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    data, name = ledger
    assert main(["explain", name, "--data", str(data), "--windows", "all", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["objectives"][0]["units"]["listed"]) == 24
    (violation,) = found["violations"]
    assert violation["clause"] == "objectives[0]"
    assert [each["trace_id"] for each in violation["evidence"]["requests"]] == [TRACE, TRACE]


def test_a_statement_that_is_not_there_is_named(
    ledger: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, name = ledger
    assert main(["explain", f"{name}0", "--data", str(data)]) == 1
    assert f"{name}0" in capsys.readouterr().err
    assert main(["explain", name, "--data", str(data), "--opening", "x"]) == 2
    assert "--opening is for a bundle" in capsys.readouterr().err
    assert main(["explain", name]) == 2
    assert "--data DIR" in capsys.readouterr().err


def test_lines_of_a_later_version_are_not_said_to_sum_to_the_credit(capsys: pytest.CaptureFixture[str]) -> None:
    line = {"id": "a.v2.l0001", "violation_id": None, "minor_units": -58065, "currency": "USD", "status": "issued"}
    _lines([line], restates=False)
    assert "which sum to the credit" in capsys.readouterr().out
    _lines([line], restates=True)
    shown = capsys.readouterr().out
    assert "with the lines before it they sum to the credit" in shown
    assert "-580.65 USD" in shown


def test_what_is_undecided_and_what_it_would_take_for_a_verdict_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    document, _ = explained(*_undecided())
    (kept,) = document["objectives"]
    kept["verdict"] |= {"minimum_valid": 500, "confidence": "breached only where the bound misses"}
    print_explanation(document)
    shown = capsys.readouterr().out
    assert "  with all that is undecided as good: 993000000000 >= 990000000000\n" in shown
    assert "  no verdict below a volume of 500\n" in shown
    assert "  breached only where the bound misses\n" in shown
    assert re.search(r"good +bad +undecided +counts as", shown)
    assert re.search(r"980 +7 +13 +lost", shown)


def _undecided() -> tuple[Any, Any]:
    agreement = terms("total_ratio", base="1000.00", minimum="0", caps={})
    windows = judged(agreement, [(0, 0)] * 1440)
    windows[0] = replace(windows[0], cells=(Cell(980, 7, 13),))
    return agreement, windows
