"""An agreement that is amended inside a period and ended inside the next, from request log to chain and bundle."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ledger.app.bundles.building import signing_message
from ledger.app.facts.handing_in import hand_in
from ledger.app.settlement.attestations import anchored, proved, proved_circuits
from ledger.app.work.outbox import OutboxRunner, Stage
from ledger.attest.checks import verification
from ledger.attest.checks.bundle_schema import TRUST_FORMAT
from ledger.attest.checks.verification import Exit, Report
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import statement_stream
from ledger.domain.terms.termination import notice_message
from ledger.domain.time.instant import SECOND_NS, parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.ingest.facts import read_facts
from ledger.wiring import making
from ledger.wiring import services as wiring
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services, create_data
from ledger.wiring.stages import stage_work
from tests.support.deployment import example_terms
from tests.support.examples import remember_pairings
from tests.unit.app.conftest import log, row

pytestmark = pytest.mark.slow

FIRST, SECOND, LAST = "2023-06-01/P14D", "2023-06-15/P16D", "2023-07-01/P10D"
TERMS = {"period": "P30D", "window": "PT48H", "effective": {"from": "2023-06-01", "until": "2024-05-26"}}


class Clock:
    """The whole deployment's clock: it stands until it is set, but for a second with each look."""

    now = parse_instant_ns("2023-06-05T00:00:00Z")

    def now_ns(self) -> int:
        Clock.now += SECOND_NS
        return Clock.now


def at(text: str) -> None:
    Clock.now = parse_instant_ns(text)


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        remember_pairings(patch)
        yield


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Iterator[Services]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "SystemClock", Clock)
        patch.setattr(wiring, "SystemClock", Clock)
        made = create_data(tmp_path_factory.mktemp("amended") / "data", key_cache=key_cache, notify=lambda _: None)
        yield made
        made.close()


@pytest.fixture(scope="module")
def settled(services: Services) -> dict[str, str]:
    """The statements' ids by period, after everything was worked."""
    commands, parties = services.commands, DemoParties(services.keyring)
    nonce = "0x" + services.randomness.bytes(32).hex()
    document = parties.signed({**parties.with_keys(example_terms()), **TERMS, "nonce": nonce})

    def consent(of: dict[str, Any]) -> bytes:
        request = commands.registration_request(of)
        assert request is not None
        return parties.sign_registration(request.digest)

    sla_id = commands.register(document, customer_signature=consent(document)).sla_id
    unsigned = {key: deepcopy(value) for key, value in document.items() if key != "signatures"}
    unsigned |= {
        "effective": {**TERMS["effective"], "from": "2023-06-15"},  # type: ignore[dict-item]
        "anchor": "2023-06-01",
        "partial_periods": "prorate",
    }
    # The same failures pay more from the fifteenth on.
    unsigned["compensation"]["rules"][0]["tiers"]["availability"][-1]["credit_percent"] = "80"
    unsigned["compensation"]["caps"] = {}
    amended = parties.signed(unsigned)
    assert commands.amend(sla_id, amended, customer_signature=consent(amended)).on_chain
    services.runner.run_until_idle(time.sleep)

    def hand(since: str, until: str, *rows: dict[str, Any]) -> None:
        at(f"{until}T00:00:00Z")
        hand_in(
            services.database,
            sla_id,
            log(*rows),
            attestor=services.attestor,
            clock=services.clock,
            read_rows=read_facts,
            declared_complete=Interval(*(parse_instant_ns(f"{day}T00:00:00Z") for day in (since, until))),
        )

    failures = [row(f"f{day}", f"2023-{day}T10:00:00Z", error_code=500) for day in ("06-14", "06-15", "07-10")]
    hand("2023-06-01", "2023-07-01", *failures[:2], row("good", "2023-06-20T00:00:00Z"))
    at("2023-07-02T00:00:00Z")
    # The second part first: the registry takes them in their order all the same.
    commands.close(sla_id, SECOND)
    commands.close(sla_id, FIRST)
    reason = "moved to another provider"
    message = notice_message(commands.notice(sla_id, effective="2023-07-11", reason=reason))
    signature = services.keyring.signing_key("customer").sign(message).hex()
    commands.terminate(sla_id, effective="2023-07-11", reason=reason, signatures={"customer": signature})
    services.runner.run_until_idle(time.sleep)
    hand("2023-07-01", "2023-07-11", failures[2])
    at("2023-07-12T00:00:00Z")
    commands.close(sla_id, LAST)
    services.runner.run_until_idle(time.sleep)
    services.sign_log()
    with services.database.read() as tx:
        return {row["period"]: str(row["id"]) for row in tx.views.statements(sla_id)}


def report(services: Services, bundle: dict[str, Any]) -> Report:
    """What a verifier says whose trust file pins this ledger."""
    with services.database.read() as tx:
        circuits, vkey = proved_circuits(tx), services.log_signer.vkey_at(tx, tx.log.checkpoint_size() or 0)
    agreement, anchor = bundle["agreement"], services.chain.anchor
    trust = {
        "format": TRUST_FORMAT,
        "log": {"origin": services.log_signer.origin, "vkey": vkey},
        **{
            f"{name}_ed25519_public_key": agreement["parties"][name]["ed25519_public_key"]
            for name in ("issuer", "customer")
        },
        "circuits": circuits,
        "chain_id": str(anchor.chain_id),
        "registry": anchor.registry,
    }
    return verification.verify_bundle(
        verification.read_bundle(canonical_bytes(bundle)), verification.read_trust(canonical_bytes(trust))
    )


def bundle(services: Services, statement: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(services.bundles.get(statement))
    return found


def forged(services: Services, honest: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Another bundle, signed by the issuer all the same."""
    lie = {**honest, **changes}
    lie = {name: value for name, value in lie.items() if value is not ...}
    return {**lie, "issuer_signature": services.issuer_key.sign(signing_message(lie)).hex()}


def fails(found: Report) -> set[str]:
    return {line.check for line in found.lines if line.outcome is verification.Outcome.FAIL}


def test_each_part_is_settled_proved_and_anchored_under_its_own_terms(
    services: Services, settled: dict[str, str]
) -> None:
    assert sorted(settled) == sorted((FIRST, SECOND, LAST))
    with services.database.read() as tx:
        for name, statement in settled.items():
            assert proved(tx, statement) is not None, name
            assert anchored(tx, statement) is not None, name
        rows = {name: tx.views.statement(statement) for name, statement in settled.items()}
    assert {name: row["terms_version"] for name, row in rows.items()} == {FIRST: 1, SECOND: 2, LAST: 2}
    assert {name: row["windows"] for name, row in rows.items()} == {FIRST: 7, SECOND: 8, LAST: 5}
    base = {name: int(row["trace"]["base"]) for name, row in rows.items()}
    assert base[FIRST] + base[SECOND] == 800_000
    assert base[LAST] == 266_667  # 10 of 30 days
    # One of one, one of two and one of one failed: 50 and 80 percent of what each part has of the base.
    credit = {name: int(row["credit"]["minor_units"]) for name, row in rows.items()}
    assert credit == {FIRST: 186_666, SECOND: 341_334, LAST: 213_334}


@pytest.mark.parametrize("name", [FIRST, SECOND, LAST])
def test_every_bundle_verifies_offline(services: Services, settled: dict[str, str], name: str) -> None:
    found = report(services, bundle(services, settled[name]))
    assert fails(found) == set(), [line for line in found.lines if line.outcome is verification.Outcome.FAIL]
    assert found.exit_code(accept_dev=True) is Exit.HOLDS


def test_only_a_part_that_something_ended_says_what(services: Services, settled: dict[str, str]) -> None:
    kinds = {name: bundle(services, settled[name]).get("ended_by", {}).get("kind") for name in settled}
    assert kinds == {FIRST: "Agreement", SECOND: None, LAST: "Termination"}


def test_the_log_had_the_notice_before_its_day(services: Services, settled: dict[str, str]) -> None:
    (line,) = (each for each in report(services, bundle(services, settled[LAST])).lines if each.check == "notice")
    assert line.outcome is verification.Outcome.PASS
    assert line.detail == "the notice of the customer was logged before 2023-07-11, by the log's clock"


def test_a_part_without_what_cut_it_is_none(services: Services, settled: dict[str, str]) -> None:
    for name in (FIRST, LAST):
        lie = forged(services, bundle(services, settled[name]), ended_by=...)
        assert "period" in fails(report(services, lie)), name


def test_an_issuer_alone_cuts_no_period(services: Services, settled: dict[str, str]) -> None:
    honest = bundle(services, settled[FIRST])
    terms = honest["ended_by"]
    moved = {**terms, "effective": {**terms["effective"], "from": "2023-06-13"}}
    assert "agreement" in fails(report(services, forged(services, honest, ended_by=moved)))
    notice = bundle(services, settled[LAST])["ended_by"]
    other = {**notice, "effective": "2023-06-15", "sla_id": "0x" + "00" * 32}
    assert "agreement" in fails(report(services, forged(services, honest, ended_by=other)))
    sooner = {**notice, "effective": "2023-06-15"}
    assert "agreement" in fails(report(services, forged(services, honest, ended_by=sooner)))


def test_the_other_version_of_the_terms_is_not_the_statements(services: Services, settled: dict[str, str]) -> None:
    second = bundle(services, settled[SECOND])
    lie = forged(services, bundle(services, settled[FIRST]), agreement=second["agreement"], ended_by=...)
    assert fails(report(services, lie)) >= {"agreement", "period"}


@pytest.fixture(scope="module")
def restated(services: Services, settled: dict[str, str]) -> list[str]:
    """The versions of the second part, which is restated twice; the last one is proved before the one it replaces."""
    with services.database.read() as tx:
        sla_id = tx.views.statement(settled[SECOND])["sla_id"]
    runner = services.runner

    def issued() -> list[StoredEvent]:
        with services.database.read() as tx:
            return list(tx.events.stream(statement_stream(sla_id, date(2023, 6, 15))))

    for version in (2, 3):
        hand_in(
            services.database,
            sla_id,
            log(row(f"late{version}", f"2023-06-2{version}T10:00:00Z", error_code=500)),
            attestor=services.attestor,
            clock=services.clock,
            read_rows=read_facts,
            declared_complete=None,
        )
        while len(issued()) < version:
            assert OutboxRunner(
                services.database,
                {stage: stage_work(services)[stage] for stage in (Stage.EVALUATE, Stage.COMPENSATE)},
                services.clock,
                holder="this test",
            ).run_once()
    stage_work(services)[Stage.PROVE](services.database, issued()[-1].id)
    runner.run_until_idle(time.sleep)
    services.sign_log()
    return [event.payload["statement_id"] for event in issued()]


def test_versions_are_anchored_once_and_in_their_order_though_the_last_is_proved_first(
    services: Services, settled: dict[str, str], restated: list[str]
) -> None:
    assert restated[0] == settled[SECOND]
    with services.database.read() as tx:
        proofs, anchors = ([find(tx, name) for name in restated] for find in (proved, anchored))
        start_ns = int(tx.views.statement(restated[0])["start_ns"])
        sla_id = tx.views.statement(restated[0])["sla_id"]
        owed = sum(line["minor_units"] for line in tx.views.credit_lines(limit=99) if line["start_ns"] == start_ns)
        newest = tx.views.statement(restated[-1])
    assert proofs[2].seq < proofs[1].seq  # type: ignore[union-attr, operator]
    assert anchors[1].seq < anchors[2].seq  # type: ignore[union-attr, operator]
    chain: Any = services.chain.anchor._chain
    found = chain.recorded(bytes.fromhex(sla_id[2:]), from_block=0, to_block=chain.latest_block())
    assert [each.statement_version for each in found if each.start_ns == start_ns] == [1, 2, 3]
    assert owed == int(newest["credit"]["minor_units"])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_bundle_of_every_version_of_an_amended_part_holds_and_does_not_claim_to_be_the_newest(
    services: Services, restated: list[str], version: int
) -> None:
    found = report(services, bundle(services, restated[version - 1]))
    assert fails(found) == set(), [line for line in found.lines if line.outcome is verification.Outcome.FAIL]
    assert found.exit_code(accept_dev=True) is Exit.HOLDS
    assert "whether a later statement supersedes this one, or other terms this agreement" in found.not_established
