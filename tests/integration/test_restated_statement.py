"""A period that is restated on the real chain: both versions proved and recorded, and their bundles hold offline."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from ledger.app.agreements.registering import load_agreement
from ledger.app.bundles.building import build_opening
from ledger.app.chain.anchoring import _load as load_recording
from ledger.app.facts.observations import record_observations
from ledger.app.periods.closing import Cause, close_period
from ledger.app.settlement.attestations import proved
from ledger.attest.checks import verification
from ledger.attest.checks.verification import Exit
from ledger.attest.crypto.signing import save_secret
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.agreement_schema import AGREEMENT
from ledger.domain.time.calendar import Period
from ledger.errors import AnchorRefused
from ledger.ingest.agreement_yaml import parse_document
from ledger.ingest.request_log import RequestLog
from ledger.resources import resource_dir
from ledger.wiring import Services, open_data
from ledger.wiring.clock import SystemClock, SystemRandomness
from ledger.wiring.main_job import run_main_job
from ledger.wiring.marker import DATA_FILE, DATA_FORMAT
from ledger.wiring.parties import DemoParties
from ledger.wiring.storage import make_storage
from tests.support.examples import failed, remember_pairings
from tests.support.forging import Forger
from tests.support.lies import Lies, bumped, change, issued, logged, put
from tests.support.secrets import NAMES, Secrets, vector_seed
from tests.unit.app.conftest import log, row

pytestmark = pytest.mark.slow

GENESIS_TIMESTAMP_S = 1_709_251_200
FIRST = date.today() - timedelta(days=5)  # noqa: DTZ011 - late facts are taken for 30 days from it


@dataclass(frozen=True)
class Restated:
    """What two restated days left: bundles by version, what they are read against, and what the registry holds."""

    bundles: dict[str, Any]
    opening: Any
    trust: Any
    recorded: list[tuple[int, int]]
    refusal: str


def _rows(data: bytes) -> RequestLog:
    return RequestLog(io.BytesIO(data), "batch")


def _request(name: str, day: int, hour: int, **changes: Any) -> dict[str, Any]:
    return row(name, at=f"{FIRST + timedelta(days=day)}T{hour:02}:00:00Z", **changes)


def _agreement(parties: DemoParties) -> Agreement:
    text = (resource_dir("examples") / "agreement.yaml").read_bytes()
    document, _ = parse_document(text, "agreement.yaml", AGREEMENT)
    terms = yaml.safe_load(yaml.safe_dump(dict(document))) | {
        "nonce": "0x" + vector_seed("nonce").hex(),
        "effective": {"from": str(FIRST), "until": str(FIRST + timedelta(days=4))},
    }
    return Agreement.from_document(parties.signed(parties.with_keys(terms)))


def _late(services: Services, sla_id: str, period: Period, *rows: dict[str, Any]) -> None:
    with services.database.begin() as tx:
        registered = load_agreement(tx, sla_id, services.attestor)
        record_observations(
            tx,
            registered,
            log(*rows),
            read_rows=_rows,
            declared_complete=period.interval,
            now_ns=services.clock.now_ns(),
        )


def _refusal_of_a_wrong_previous(services: Services, name: str) -> str:
    """What the registry says of the second version's proof when it names other signals than those recorded."""
    while True:
        with services.database.read() as tx:
            proof = proved(tx, name) if any(found["id"] == name for found in tx.views.statements()) else None
            if proof is not None:
                material = load_recording(tx, proof.payload, services.attestor)
                break
        assert services.runner.run_once()
    signals = material.recording.previous_signals
    wrong = replace(material.recording, previous_signals=(*signals[:1], signals[1] + 1, *signals[2:]))
    with pytest.raises(AnchorRefused) as refused:
        services.chain.anchor.record(wrong, material.verification_key, dev_unsafe=True)
    return str(refused.value.message)


@pytest.fixture(scope="module")
def restated(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Iterator[Restated]:
    folder = tmp_path_factory.mktemp("restated") / "data"
    (folder / "keys").mkdir(mode=0o700, parents=True)
    for name in NAMES:
        save_secret(folder / "keys" / f"{name}.key", vector_seed(name))
    genesis = {"format": DATA_FORMAT, "genesis_timestamp_s": GENESIS_TIMESTAMP_S}
    (folder / DATA_FILE).write_bytes(canonical_bytes(genesis))
    make_storage(folder, None, SystemClock(), SystemRandomness())
    services = open_data(folder, key_cache=key_cache, notify=print)
    try:
        parties = DemoParties(services.keyring)
        agreement = _agreement(parties)
        sla_id = services.attestor.sla_id(agreement)
        first, second = (agreement.period_starting(FIRST + timedelta(days=day)) for day in (0, 1))
        day = log(*(_request(f"a{hour}", 0, hour) for hour in range(24)))
        job = run_main_job(services, parties, agreement, first, day, read_rows=_rows, span=None, step=print)
        _late(services, sla_id, first, _request("late", 0, 10, error_code=500))
        again = job.statement.id.removesuffix("v1") + "v2"
        refusal = _refusal_of_a_wrong_previous(services, again)
        services.runner.run_until_idle(time.sleep)
        # The second day is withheld at first: the registry hears of its second version alone.
        with services.database.begin() as tx:
            registered = load_agreement(tx, sla_id, services.attestor)
            close_period(tx, registered, second, cause=Cause.REQUEST, now_ns=services.clock.now_ns())
        services.runner.run_until_idle(time.sleep)
        _late(services, sla_id, second, _request("b", 1, 3))
        services.runner.run_until_idle(time.sleep)
        services.sign_log()
        names = {"v1": job.statement.id, "v2": again}
        with services.database.read() as tx:
            day_two = [found["id"] for found in tx.views.statements() if found["start_ns"] == second.interval.start_ns]
            opening = verification.read_opening(build_opening(tx, again))
        names |= dict(zip(("withheld", "settled"), day_two, strict=True))
        chain: Any = services.chain.anchor._chain
        found = chain.recorded(bytes.fromhex(sla_id[2:]), from_block=0, to_block=chain.latest_block())
        yield Restated(
            {key: verification.read_bundle(services.bundles.get(name)) for key, name in names.items()},
            opening,
            verification.read_trust(json.dumps(job.trust).encode()),
            [(each.start_ns, each.statement_version) for each in found],
            refusal,
        )
    finally:
        services.close()


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        remember_pairings(patch)
        yield


@pytest.mark.parametrize("name", ["v1", "v2", "withheld", "settled"])
def test_the_bundle_of_every_version_holds(restated: Restated, name: str) -> None:
    report = verification.verify_bundle(restated.bundles[name], restated.trust)
    assert failed(report) == set()
    assert report.exit_code(accept_dev=True) is Exit.HOLDS
    assert any("later statement" in text for text in report.not_established)


def test_an_opening_fits_the_version_it_was_made_for(restated: Restated) -> None:
    assert failed(verification.verify_bundle(restated.bundles["v2"], restated.trust, restated.opening)) == set()
    assert "opening" in failed(verification.verify_bundle(restated.bundles["v1"], restated.trust, restated.opening))


def test_the_registry_holds_each_version_once(restated: Restated) -> None:
    first, second = sorted({start_ns for start_ns, _ in restated.recorded})
    assert sorted(restated.recorded) == [(first, 1), (first, 2), (second, 1)]


def test_the_registry_takes_no_proof_that_replaces_something_else(restated: Restated) -> None:
    assert "PreviousStatementUnknown" in restated.refusal


def _without(*path: str) -> Any:
    def lie(forged: Forger) -> None:
        node = forged.bundle
        for part in path[:-1]:
            node = node[part]
        del node[path[-1]]

    return lie


LIES: Lies = {
    "another previous context": (put("context.prev_ctx", "1"), {"context"}),
    "no previous context": (put("context.prev_ctx", "0"), {"context"}),
    "the replaced signals left out": (_without("context", "prev_signals"), {"context", "anchor"}),
    "another replaced credit": (change("context.prev_signals.1", bumped), {"anchor"}),
    "signals of another statement": (change("context.prev_signals.2", bumped), {"context", "anchor"}),
    "signals from other telemetry": (change("context.prev_signals.3", bumped), {"context", "anchor"}),
    "signals under other terms": (change("context.prev_signals.4", bumped), {"context", "anchor"}),
    "a version skipped": (issued("statement_version", 3), {"log inclusion", "restatement", "context", "anchor"}),
    "called the first version": (issued("statement_version", 1), {"log inclusion", "restatement"}),
    "the version before left out": (_without("previous"), {"restatement", "context", "anchor"}),
    "another event replaced": (issued("restates.event_id", "0" * 8 + "-0000-0000-0000-" + "0" * 12), {"restatement"}),
    "another statement replaced": (issued("restates.statement_id", "x.2024-03-01.v1"), {"restatement"}),
    "another difference of the credit": (issued("credit_delta.difference", "1"), {"restatement"}),
    "another difference of a count": (issued("objective_deltas.0.valid.difference", 2), {"restatement"}),
    "a smaller credit before": (
        logged(put("previous.0.payload.credit", {"currency": "USD", "minor_units": "1"})),
        {"restatement"},
    ),
    "a version before that is not in the log": (
        change("previous.0.payload.idle", lambda idle: idle + 1),
        {"restatement"},
    ),
    "called withheld before": (
        logged(put("previous.0.payload.state", "withheld")),
        {"context", "anchor"},
    ),
    "a block sealed for a later version": (logged(put("seals.0.payload.statement_version", 3)), {"log inclusion"}),
    "a block sealed in the place of the first": (logged(put("seals.0.header.version", 0)), {"log inclusion"}),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_about_versions_is_caught(restated: Restated, name: str) -> None:
    lie, checks = LIES[name]
    forged = Forger(restated.bundles["v2"], Secrets.of_vectors())
    lie(forged)
    report = verification.verify_bundle(verification.read_bundle(forged.sign()), restated.trust)
    assert checks <= failed(report)
    assert report.exit_code(accept_dev=True) is Exit.FAILED


def test_the_first_version_claims_to_replace_nothing(restated: Restated) -> None:
    forged = Forger(restated.bundles["v1"], Secrets.of_vectors())
    forged.bundle["previous"] = [restated.bundles["v1"]["statement"]]
    report = verification.verify_bundle(verification.read_bundle(forged.sign()), restated.trust)
    assert "restatement" in failed(report)


def test_the_blocks_of_the_first_version_do_not_pass_for_those_of_the_second(restated: Restated) -> None:
    forged = Forger(restated.bundles["v2"], Secrets.of_vectors())
    forged.bundle["seals"] = json.loads(json.dumps(restated.bundles["v1"]["seals"]))
    forged.log()
    report = verification.verify_bundle(verification.read_bundle(forged.sign()), restated.trust)
    assert "telemetry" in failed(report)
