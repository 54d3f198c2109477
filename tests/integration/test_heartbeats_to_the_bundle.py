"""A day under ``coverage: heartbeat``: withheld while no heartbeat covers it, and settled, proved and recorded on chain
when they come; both bundles hold offline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from ledger.app.agreements.registering import load_agreement
from ledger.app.bundles.building import build_opening
from ledger.app.facts.handing_in import hand_in
from ledger.app.settlement.attestations import proved_circuits
from ledger.attest.checks import verification
from ledger.attest.checks.verification import Exit
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import SECOND_NS, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.ingest.facts import read_facts
from ledger.wiring.main_job import MainJob, run_main_job
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services, create_data
from tests.support.deployment import example_terms
from tests.support.examples import failed, remember_pairings
from tests.unit.app.conftest import log, row

pytestmark = pytest.mark.slow

FIRST = date.today() - timedelta(days=5)  # noqa: DTZ011 - late facts are taken for 30 days from it
HOUR_NS = 3600 * SECOND_NS


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Iterator[Services]:
    made = create_data(tmp_path_factory.mktemp("heartbeats") / "data", key_cache=key_cache, notify=lambda _: None)
    yield made
    made.close()


@pytest.fixture(scope="module")
def settled(services: Services) -> tuple[MainJob, str]:
    """The main job on a log of which one hour is declared complete, and the statement's id after the heartbeats."""
    parties = DemoParties(services.keyring)
    terms = parties.with_keys(example_terms()) | {
        "nonce": "0x" + services.randomness.bytes(32).hex(),
        "effective": {"from": str(FIRST), "until": str(FIRST + timedelta(days=4))},
        "source": {"name": "gateway", "coverage": "heartbeat"},
    }
    agreement = Agreement.from_document(parties.signed(terms))
    period = agreement.period_starting(FIRST)
    start_ns = period.interval.start_ns
    hour = Interval(start_ns + 3 * HOUR_NS, start_ns + 4 * HOUR_NS)
    requests = log(*(row(f"r{n}", format_instant_ns(hour.start_ns + n * SECOND_NS)) for n in range(9)))
    job = run_main_job(services, parties, agreement, period, requests, read_rows=read_facts, span=hour, step=print)
    sla_id = services.attestor.sla_id(agreement)
    beats: list[dict[str, Any]] = [
        {
            "heartbeat_id": f"h{n}",
            "at": format_instant_ns(start_ns + n * HOUR_NS),
            "service": agreement.service,
            "covers_s": 3600,
        }
        for n in range(1, 25)
    ]
    hand_in(
        services.database,
        sla_id,
        log(*beats),
        attestor=services.attestor,
        clock=services.clock,
        read_rows=read_facts,
        declared_complete=None,
    )
    services.runner.run_until_idle(lambda _: None)
    services.sign_log()
    with services.database.read() as tx:
        assert load_agreement(tx, sla_id, services.attestor).agreement.heartbeat_longest_s == 3600
    return job, job.statement.id.removesuffix("v1") + "v2"


def test_without_heartbeats_the_day_is_withheld_and_with_them_it_is_settled(
    services: Services, settled: tuple[MainJob, str]
) -> None:
    job, name = settled
    with services.database.read() as tx:
        withheld, found = tx.views.statement(job.statement.id), tx.views.statement(name)
    assert (withheld["state"], withheld["observed"], withheld["credit"]) == ("withheld", 1, None)
    assert (found["state"], found["observed"], found["idle"]) == ("settled", 24, 23)
    assert {each["id"]: (each["good"], each["valid"]) for each in found["objectives"]}["availability"] == (9, 9)


def test_the_bundles_of_both_hold_offline(services: Services, settled: tuple[MainJob, str]) -> None:
    job, name = settled
    with pytest.MonkeyPatch.context() as patch:
        remember_pairings(patch)
        trust = verification.read_trust(json.dumps(_trust(services, job)).encode())
        with services.database.read() as tx:
            opening = verification.read_opening(build_opening(tx, name))
        for statement, opened in ((job.statement.id, None), (name, opening)):
            bundle = verification.read_bundle(services.bundles.get(statement))
            report = verification.verify_bundle(bundle, trust, opened)
            assert failed(report) == set()
            assert report.exit_code(accept_dev=True) is Exit.HOLDS


def _trust(services: Services, job: MainJob) -> dict[str, Any]:
    """The main job's, with the circuits that the second statement was proved with."""
    with services.database.read() as tx:
        return {**job.trust, "circuits": proved_circuits(tx)}
