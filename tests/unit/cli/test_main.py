"""The command itself: what is not installed is named, colours are asked about, spans are not lost silently."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ledger.cli.main import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
HALF_DAY = "2023-06-14T00:00:00Z/2023-06-14T12:30:00Z"


def of_a_base_installation(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command where the extras are not installed: a finder that does not know their libraries stands for that."""
    program = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('sqlalchemy', 'alembic', 'litestar', 'uvicorn', 'web3', 'groth16py'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from ledger.cli.main import main\n"
        f"sys.exit(main({list(map(str, arguments))!r}))\n"
    )
    return subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "command",
    [("up", "--port", "0"), ("probe", "record", ROOT / "README.md"), ("statements", "list"), ("keys", "list")],
)
def test_a_command_whose_extra_is_missing_says_what_to_install(tmp_path: Path, command: tuple[object, ...]) -> None:
    done = of_a_base_installation(*command, "--data", tmp_path)
    assert done.returncode == 1
    assert "pip install 'sla-ledger[server" in done.stderr
    assert "Traceback" not in done.stderr


def test_who_verifies_needs_no_extra(tmp_path: Path) -> None:
    vectors = ROOT / "tests/vectors"
    for command, code in (
        (("verify", vectors / "bundle.json"), 3),
        (("explain", vectors / "bundle.json"), 0),
        (
            (
                "settle",
                "--agreement",
                ROOT / "examples/agreement.yaml",
                "--requests",
                ROOT / "examples/requests.ndjson",
            ),
            0,
        ),
        (("probe", "key", "--out", tmp_path / "probe.key"), 0),
        # It gets as far as to look for the folder.
        (("verify-page", "--out", tmp_path / "none" / "verify.html"), 2),
    ):
        done = of_a_base_installation(*command)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


def test_a_ledger_is_opened_without_the_libraries_of_the_chain() -> None:
    """They take longer to load than all the rest, and most commands and workers never touch a chain."""
    program = (
        "import sys, ledger.cli.opening\n"
        "print(sorted({'web3', 'eth_account', 'eth_tester', 'eth', 'aiohttp'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_declined(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    main(["verify", str(ROOT / "tests/vectors/bundle.json")])
    assert "\x1b[" not in capsys.readouterr().out


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    main(["verify", str(ROOT / "tests/vectors/bundle.json")])
    assert "\x1b[" in capsys.readouterr().out


def test_demo_takes_one_span_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(ROOT / "examples/requests.ndjson")
    spans = ["--span", HALF_DAY, "--span", "2023-06-14T13:00:00Z/2023-06-14T20:00:00Z"]
    assert main(["demo", "--requests", log, *spans, "--out", str(tmp_path / "out")]) == 2
    assert "--span is given more than once" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_settle_says_which_accepted_requests_count_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    log, terms = str(ROOT / "examples/requests.ndjson"), str(ROOT / "examples/agreement.yaml")
    assert main(["settle", "--agreement", terms, "--requests", log, "--span", HALF_DAY]) == 0
    shown = capsys.readouterr().out
    assert "of the accepted lie in windows that the spans do not cover whole, and count nowhere" in shown
    assert "Withheld: 12 of 24 windows were observed, below the agreement's floor of 99.00 %" in shown
