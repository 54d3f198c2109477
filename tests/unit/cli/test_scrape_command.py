"""``sla-ledger scrape`` against real endpoints: what is counted there is a fact of the agreement."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ledger.app.agreements.registering import register_agreement
from ledger.attest.crypto.signing import verify
from ledger.cli.main import main
from ledger.domain.terms.agreement import Agreement
from ledger.wiring.services import create_data
from tests.unit.app.conftest import signed_agreement
from tests.unit.app.feeding import desk_of
from tests.unit.app.test_scraping import text
from tests.unit.cli.test_collect_command import Exporter
from tests.unit.cli.test_collect_command import text as answers
from tests.unit.ingest.test_scraped_facts import OBJECTIVES

pytestmark = pytest.mark.slow


@pytest.fixture
def exporters() -> Iterator[tuple[Exporter, Exporter]]:
    found = Exporter(), Exporter()
    yield found
    for each in found:
        each.server.shutdown()
        each.server.server_close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with one agreement that is counted from counters and runs today."""
    folder, today = tmp_path / "data", datetime.now(UTC).date()
    days = [str(today + timedelta(days=each)) for each in (-2, 30)]
    compensation = desk_of(OBJECTIVES[:1]).agreement.document["compensation"]
    document = signed_agreement(
        objectives=OBJECTIVES[:1], compensation=compensation, effective={"from": days[0], "until": days[1]}
    )
    services = create_data(folder, key_cache=tmp_path / "keys", notify=lambda _: None)
    with services.database.begin() as tx:
        register_agreement(
            tx,
            Agreement.from_document(document),
            attestor=services.attestor,
            verify=verify,
            terms_version=1,
            registration=None,
            customer_signature=None,
            now_ns=1,
        )
    services.close()
    return folder


def test_rounds_are_recorded_and_continue_each_other(
    data: Path, exporters: tuple[Exporter, Exporter], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = exporters
    named = ["--data", str(data), "--target", first.url, "--target", second.url]
    first.answer, second.answer = answers(text(10)), answers(text(20, 1))
    # Nothing was seen before it.
    assert main(["scrape", *named, "--once", "--json"]) == 1
    before = json.loads(capsys.readouterr().out)
    assert (before["complete_from"], before["rows"], before["problems"]) == (None, {"counters": 4}, [])
    first.answer = answers(text(17))
    assert main(["scrape", *named, "--once", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["complete_from"] == before["at"]
    second.answer = answers("", status=503)
    assert main(["scrape", *named, "--once"]) == 1
    shown = capsys.readouterr().out
    assert "2 readings of counters; nothing is shown to be complete" in shown
    assert "answered 503" in shown


def test_workers_that_take_turns_behind_one_address_are_told(
    data: Path, exporters: tuple[Exporter, Exporter], capsys: pytest.CaptureFixture[str]
) -> None:
    exporter, _ = exporters
    named = ["--data", str(data), "--target", exporter.url, "--once"]
    for total in (900, 20, 901, 21, 902):
        exporter.answer = answers(text(total))
        main(["scrape", *named])
    assert "began anew" not in capsys.readouterr().out
    exporter.answer = answers(text(22))
    assert main(["scrape", *named, "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["warnings"]
    assert "began anew 3 times in 6 readings" in said
    assert main(["scrape", *named]) == 0
    assert f"  {exporter.url.removeprefix('http://').removesuffix('/metrics')}: began anew" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--every", "120m"], "so no time would ever be covered"),
        (["--target", "http://127.0.0.1:9/metrics"], "is named twice"),
        ([], "nothing was read"),
    ],
)
def test_what_could_never_count_is_refused(
    data: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scrape", "--data", str(data), "--target", "http://127.0.0.1:9/metrics", "--once", *more]) == 2
    assert message in capsys.readouterr().err
