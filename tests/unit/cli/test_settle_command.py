"""``sla-ledger settle`` and its neighbours as a user meets them: output, messages, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import main
from tests.unit.domain.samples import EXAMPLES

AGREEMENT = EXAMPLES / "agreement.yaml"
ROOT = EXAMPLES.parent


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def runner(*arguments: object) -> Ran:
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    return runner


def row(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "request_id": f"r-{number}",
        "started_at": f"2023-06-14T{number % 24:02}:00:00Z",
        "service": "example-chat",
        "ttft_s": 0.2,
        "e2e_s": 1.5,
        "error_code": None,
    } | changes


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: dict[str, Any] | bytes, end: bytes = b"\n") -> Path:
        path = tmp_path / "log.ndjson"
        path.write_bytes(b"\n".join(r if isinstance(r, bytes) else json.dumps(r).encode() for r in rows) + end)
        return path

    return write


def settle(run: Run, requests: Path, *more: object, agreement: Path = AGREEMENT) -> Ran:
    return run("settle", "--agreement", agreement, "--requests", requests, *more)


def test_the_sample_day_shows_a_breach_and_a_credit(run: Run) -> None:
    ran = settle(run, EXAMPLES / "requests.ndjson", "--json")
    assert ran.code == 0
    assert list(ran.json) == [
        "period", "state", "requests", "accepted", "rejected", "duplicates", "conflicts", "objectives", "credit",
        "terms_hash",
    ]  # fmt: skip
    assert [(o["id"], o["verdict"]) for o in ran.json["objectives"]] == [
        ("availability", "breached"),
        ("ttft", "breached"),
        ("response", "met"),
    ]
    assert ran.json["objectives"][0] == {
        "id": "availability", "good": 738, "valid": 760, "target": "99.95", "verdict": "breached",
    }  # fmt: skip
    assert ran.json["credit"] == {"currency": "USD", "minor_units": 200_000}
    assert (ran.json["period"], ran.json["state"]) == ("2023-06-14/P1D", "settled")
    assert (ran.json["requests"], ran.json["accepted"], ran.json["rejected"], ran.json["duplicates"]) == (
        763,
        760,
        2,
        1,
    )
    assert ran.json["terms_hash"].isdecimal()


def test_the_sample_is_what_its_script_writes() -> None:
    script = [sys.executable, str(EXAMPLES / "make_requests.py")]
    written = subprocess.run(script, capture_output=True, check=True).stdout
    assert written == (EXAMPLES / "requests.ndjson").read_bytes()


def test_people_get_a_table(run: Run) -> None:
    ran = settle(run, EXAMPLES / "requests.ndjson")
    assert "738/760" in ran.out
    assert "97.1052 %" in ran.out
    assert "Credit: 2000.00 USD" in ran.out
    assert "\x1b[" not in ran.out
    assert ":762: started_at: " in ran.err


def test_a_clause_of_exclusion_changes_the_ratio(run: Run) -> None:
    ran = settle(run, EXAMPLES / "requests.ndjson", "--json", agreement=EXAMPLES / "agreement-excluding-429.yaml")
    assert ran.json["objectives"][0]["valid"] == 743


@pytest.mark.parametrize("clauses", ["[]", "[{id: limit, error_codes: [429], reason: over the rate}]"])
def test_an_agreement_without_availability_settles(
    run: Run, log: Callable[..., Path], tmp_path: Path, clauses: str
) -> None:
    text = AGREEMENT.read_text().replace("exclusions: []", f"exclusions: {clauses}", 1)
    text = re.sub(r"  - id: availability.*?(?=  - id: ttft)", "", text, flags=re.DOTALL)
    text = re.sub(r"\n +availability:.*?(?=\n +ttft:)", "", text, flags=re.DOTALL)
    path = tmp_path / "a.yaml"
    path.write_text(text)
    requests = log(row(1), row(2, error_code=500), row(3, error_code=429))
    ran = settle(run, requests, "--json", agreement=path)
    assert (ran.code, [(o["id"], o["good"], o["valid"]) for o in ran.json["objectives"]]) == (
        0,
        [("ttft", 1, 1), ("response", 1, 1)],
    )
    excluded = 0 if clauses == "[]" else 1
    assert f"{excluded} excluded by a clause" in settle(run, requests, agreement=path).out


def test_an_agreement_with_an_impact_rule_settles_and_is_attestable(run: Run) -> None:
    path = EXAMPLES / "agreement-impact.yaml"
    ran = settle(run, EXAMPLES / "requests.ndjson", "--json", agreement=path)
    assert ran.json["terms_hash"] is not None
    assert ran.json["credit"] == {"currency": "CNY", "minor_units": 19_600}
    assert run("agreements", "validate", path, "--json").json["attestable"] is True


def test_terms_that_no_circuit_attests_settle_unproved(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "share.yaml"
    text = (EXAMPLES / "agreement-impact.yaml").read_text()
    path.write_text(text.replace('contract: "2900.00"', 'contract: "50 %"'))
    ran = settle(run, EXAMPLES / "requests.ndjson", "--json", agreement=path)
    assert ran.json["terms_hash"] is None
    assert ran.json["credit"] == {"currency": "CNY", "minor_units": 19_600}
    checked = run("agreements", "validate", path, "--json").json
    assert checked["attestable"] is False
    assert "a cap is a percentage" in checked["reasons"][0]


def test_another_service_has_another_terms_hash(run: Run, log: Callable[..., Path]) -> None:
    mine = settle(run, log(row(1)), "--json").json["terms_hash"]
    other = settle(run, log(row(1, service="groq_70b")), "--service", "groq_70b", "--json").json
    assert (other["accepted"], other["terms_hash"] != mine) == (1, True)


@pytest.mark.parametrize(
    ("bad", "column", "says"),
    [
        (b'{"request_id": "r-2",', "rejected", "log.ndjson:2: "),
        (row(2, ttft_s=-0.5), "rejected", "log.ndjson:2: ttft_s: -0.5 is negative"),
        (row(2, e2e_s=None), "rejected", "log.ndjson:2: e2e_s: "),
        (row(2, started_at="2023-06-14T02:00:00"), "rejected", "log.ndjson:2: started_at: "),
        (row(1, ttft_s=0.3), "conflicts", "log.ndjson:2: request_id: 'r-1'"),
        (row(2, started_at="2023-06-15T00:00:00Z"), "rejected", "log.ndjson:2: started_at: "),
        (row(2, service="other"), "rejected", "log.ndjson:2: service: 'other'"),
    ],
    ids=["malformed", "negative", "no latency", "no zone", "conflict", "outside the period", "other service"],
)
def test_a_row_that_cannot_be_used_leaves_the_rest(
    run: Run, log: Callable[..., Path], bad: Any, column: str, says: str
) -> None:
    path = log(row(1), bad, row(3))
    arguments = ("--period", "2023-06-14/P1D", "--json")
    ran = settle(run, path, *arguments)
    assert ran.code == 0
    assert (ran.json["requests"], ran.json["accepted"], ran.json[column]) == (3, 2, 1)
    assert says in ran.err
    assert settle(run, path, *arguments, "--strict").code == 1
    assert settle(run, log(row(1), row(1), row(3)), *arguments, "--strict").code == 0


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "log.ndjson:1: the file is empty"),
        (b"not\nndjson\n", "log.ndjson:1: no line is a JSON object"),
        (json.dumps(row(1)).encode() + b'\n{"request_id": "r-', "log.ndjson:2: the last line is cut off"),
        (json.dumps(row(1)).encode() + b'\n{"x": "' + b"y" * 1_100_000 + b'"}\n', "log.ndjson:2: the line is longer"),
    ],
    ids=["empty", "not NDJSON", "cut off", "giant line"],
)
def test_a_log_that_cannot_be_used_ends_with_2(run: Run, tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "log.ndjson"
    path.write_bytes(data)
    ran = settle(run, path)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("tier: gold", "tier: [gold", None),
        ("tier: gold", "tier: gold\nshade: deep", "shade"),
        ("timezone: UTC", "timezone: Mars/Base", "timezone"),
        ('target: "99.95"', 'target: "0"', "objectives[0].target"),
        ('target: "99.95"', 'target: "100.1"', "objectives[0].target"),
        ('target: "99.95"', "target: NaN", "objectives[0].target"),
    ],
)
def test_an_agreement_that_cannot_be_used_ends_with_2(
    run: Run, tmp_path: Path, old: str, new: str, field: str | None
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(AGREEMENT.read_text().replace(old, new, 1))
    ran = settle(run, EXAMPLES / "requests.ndjson", "--json", agreement=path)
    assert (ran.code, ran.out) == (2, "")
    error = json.loads(ran.err)
    assert error["message"].startswith(f"{path}:{error['data']['line']}: ")
    assert error["code"] == "document_invalid"
    if field is not None:
        assert error["data"]["field"] == field
        assert f"{field}: " in error["message"]
    assert run("agreements", "validate", path).code == 2


@pytest.mark.parametrize("name", ["agreement.yaml", "agreement-impact.yaml"])
def test_a_collector_key_off_the_curve_is_named_with_file_and_line(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.yaml"
    text = (EXAMPLES / name).read_text()
    path.write_text(re.sub(r'( +x: )"\d+"', r'\1"7"', text, count=1))
    line = text[: text.index("babyjubjub_public_key")].count("\n") + 1
    for ran in (settle(run, EXAMPLES / "requests.ndjson", agreement=path), run("agreements", "validate", path)):
        assert ran.code == 2
        assert f"{path}:{line}: collector.babyjubjub_public_key: " in ran.err


def test_half_a_character_is_refused_before_anything_is_computed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(AGREEMENT.read_text().replace("name: example-collector", 'name: "a\\ud800"', 1))
    ran = settle(run, EXAMPLES / "requests.ndjson", agreement=path)
    assert (ran.code, "collector.name" in ran.err) == (2, True)


def test_an_output_that_is_full_is_one_message(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ledger.cli.main", "settle", "--agreement", AGREEMENT]
    command += ["--requests", EXAMPLES / "requests.ndjson", "--json"]
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ran.returncode == 1
    assert b"No space left on device" in ran.stderr
    assert b"Traceback" not in ran.stderr
    assert b"Exception ignored" not in ran.stderr


@pytest.mark.parametrize("missing", ["--agreement", "--requests"])
def test_files_that_are_not_there_end_with_2(run: Run, tmp_path: Path, missing: str) -> None:
    paths = {"--agreement": AGREEMENT, "--requests": EXAMPLES / "requests.ndjson"} | {missing: tmp_path / "none"}
    ran = run("settle", *[part for pair in paths.items() for part in pair])
    assert ran.code == 2
    assert "cannot be read" in ran.err


def test_without_a_period_several_are_listed(run: Run, log: Callable[..., Path]) -> None:
    path = log(row(1), row(2), row(3, started_at="2023-06-15T00:00:00Z"), row(4, started_at="2024-06-15T00:00:00Z"))
    ran = settle(run, path)
    assert (ran.code, ran.out) == (2, "")
    assert "2023-06-14/P1D  2 rows" in ran.err
    assert "2023-06-15/P1D  1 rows" in ran.err
    assert "outside every period of the agreement" in ran.err
    assert settle(run, path, "--period", "2023-06-15/P1D", "--json").json["accepted"] == 1


def test_without_a_period_rows_that_are_not_of_the_service_do_not_choose_one(
    run: Run, log: Callable[..., Path]
) -> None:
    ran = settle(run, log(row(1, service="other", started_at="2023-01-01T00:00:00Z"), row(2)), "--json")
    assert ran.json["period"] == "2023-06-14/P1D"
    lost = settle(run, log(row(1, service="other")))
    assert lost.code == 2
    assert "--service" in lost.err
    assert "other" in lost.err


@pytest.mark.parametrize(
    "period",
    [
        "2023-W24-3/P1D",
        "2023-06-14",
        "2023-06-14/P1W",
        "2024-06-14/P1D",
        "2023-13-01/P1D",
        "/",
        "2023-06-14/P1D/x",
        "P1D",
    ],
)
def test_periods_that_are_none_end_with_2(run: Run, period: str) -> None:
    assert settle(run, EXAMPLES / "requests.ndjson", "--period", period).code == 2


def test_a_span_that_leaves_too_much_unseen_withholds_the_period(run: Run, log: Callable[..., Path]) -> None:
    span = "2023-06-14T00:00:00Z/2023-06-14T12:00:00Z"
    ran = settle(run, log(*map(row, range(24))), "--span", span, "--json")
    assert ran.code == 0
    assert ran.json["state"] == "withheld"
    assert {objective["verdict"] for objective in ran.json["objectives"]} == {"withheld"}
    assert ran.json["credit"]["minor_units"] is None
    assert (ran.json["accepted"], ran.json["rejected"]) == (12, 12)
    assert "Withheld: 12 of 24" in settle(run, log(*map(row, range(24))), "--span", span).out


def test_spans_add_up(run: Run, log: Callable[..., Path]) -> None:
    noon = "2023-06-14T12:00:00Z"
    spans = ("--span", f"2023-06-14T00:00:00Z/{noon}", "--span", f"{noon}/2023-06-15T00:00:00Z")
    assert settle(run, log(row(1)), *spans, "--json").json["state"] == "settled"


class TestHeartbeats:
    """``settle`` under ``coverage: heartbeat``."""

    @pytest.fixture
    def beating(self, tmp_path: Path) -> Path:
        path = tmp_path / "beating.yaml"
        path.write_text(AGREEMENT.read_text().replace("coverage: complete_log", "coverage: heartbeat"))
        return path

    @pytest.fixture
    def beats(self, tmp_path: Path) -> Callable[..., Path]:
        def write(*rows: dict[str, Any]) -> Path:
            path = tmp_path / "beats.ndjson"
            path.write_text("".join(json.dumps(each) + "\n" for each in rows))
            return path

        return write

    def beat(self, hour: int, **changes: Any) -> dict[str, Any]:
        at = f"2023-06-14T{hour:02}:00:00Z" if hour < 24 else "2023-06-15T00:00:00Z"
        return {"heartbeat_id": f"h-{hour}", "at": at, "service": "example-chat", "covers_s": 3600} | changes

    def test_what_no_heartbeat_covers_is_missing(
        self, run: Run, log: Callable[..., Path], beats: Callable[..., Path], beating: Path
    ) -> None:
        requests, whole = log(row(1)), [self.beat(hour) for hour in range(1, 25)]
        more = ("--period", "2023-06-14/P1D", "--heartbeats")
        ran = settle(run, requests, *more, beats(*whole), agreement=beating)
        assert "24 of 24 windows observed (23 idle, 0 excluded, 0 without data)" in ran.out
        ran = settle(run, requests, *more, beats(*whole[5:]), agreement=beating)
        assert "19 of 24 windows observed (19 idle, 0 excluded, 5 without data)" in ran.out
        assert "1 of the accepted lie in windows" in ran.out

    def test_a_heartbeat_that_cannot_be_used_is_named_and_strict_ends_with_1(
        self, run: Run, log: Callable[..., Path], beats: Callable[..., Path], beating: Path
    ) -> None:
        found = beats(self.beat(2), self.beat(3, covers_s=3601))
        more = ("--period", "2023-06-14/P1D", "--heartbeats", found, "--strict")
        ran = settle(run, log(row(1)), *more, agreement=beating)
        assert (ran.code, "covers 3601 s, and the agreement takes at most 3600 s" in ran.err) == (1, True)

    @pytest.mark.parametrize(
        ("more", "says"),
        [
            ((), "without one nothing is observed; give --heartbeats FILE, or --span"),
            (("--heartbeats", AGREEMENT), "--heartbeats also needs --period"),
        ],
    )
    def test_a_log_alone_is_not_taken_as_complete(
        self, run: Run, log: Callable[..., Path], beating: Path, more: tuple[object, ...], says: str
    ) -> None:
        ran = settle(run, log(row(1)), *more, agreement=beating)
        assert (ran.code, says in ran.err) == (2, True)

    def test_an_agreement_without_them_takes_none(
        self, run: Run, log: Callable[..., Path], beats: Callable[..., Path]
    ) -> None:
        ran = settle(run, log(row(1)), "--heartbeats", beats(self.beat(1)), "--period", "2023-06-14/P1D")
        assert (ran.code, "leave --heartbeats out" in ran.err) == (2, True)


@pytest.mark.parametrize("span", ["x", "2023-06-14T00:00:00Z", "2023-06-14T00:00:00/2023-06-15T00:00:00Z",
                                  "2023-06-15T00:00:00Z/2023-06-14T00:00:00Z", "/", "",
                                  "2023-06-14T00:00:00Z/2023-06-14T00:00:00Z"])  # fmt: skip
def test_spans_that_are_none_end_with_2(run: Run, span: str) -> None:
    ran = settle(run, EXAMPLES / "requests.ndjson", "--span", span)
    assert ran.code == 2
    assert f"--span {span!r}: " in ran.err


def test_only_the_first_problems_are_shown(run: Run, log: Callable[..., Path]) -> None:
    ran = settle(run, log(row(0), *(row(n, ttft_s=-1) for n in range(1, 50))), "--json")
    assert ran.err.count("is negative") == 20
    assert "and 29 more rows" in ran.err


def test_settle_is_pure_and_needs_no_extra(tmp_path: Path) -> None:
    """No file is written, and nothing of the server, prover or chain is imported."""
    script = (
        "import sys\nfrom ledger.cli.main import main\n"
        "code = main(['settle', '--agreement', sys.argv[1], '--requests', sys.argv[2]])\n"
        "heavy = {'sqlalchemy', 'web3', 'groth16py', 'litestar', 'py_ecc', 'alembic'} & set(sys.modules)\n"
        "sys.exit(code or (9 if heavy else 0))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(AGREEMENT), str(EXAMPLES / "requests.ndjson")],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, list(tmp_path.iterdir())) == (0, []), ran.stderr


def test_unknown_options_and_commands_end_with_2(run: Run) -> None:
    assert run("settle", "--colour").code == 2
    assert run("unsettle").code == 2


def test_help_tells_the_exit_codes(run: Run) -> None:
    """Those of every command: test_every_command.py."""
    ran = run("--help")
    assert (ran.code, "Exit codes:" in ran.out) == (0, True)


def test_generated_files_are_current(run: Run) -> None:
    ran = run("generate", "--check")
    assert (ran.code, ran.err) == (0, "")
    ran = run("generate", "--check", "--json")
    assert (ran.code, json.loads(ran.out)) == (0, {"not_current": []})
