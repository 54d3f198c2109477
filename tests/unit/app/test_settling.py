"""From a signed agreement to an issued statement, use case by use case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ledger.app.agreements.registering import register_agreement
from ledger.app.bundles.building import build_opening
from ledger.app.facts.observations import RecordedBatch, record_observations
from ledger.app.judgement.windows import JudgedPeriod, evaluate_windows, load_windows
from ledger.app.ports.store import Transaction
from ledger.app.settlement.statements import IssuedStatement, issue_statement, issued_event
from ledger.attest.crypto.signing import verify
from ledger.domain.credits.settlement import SettlementState
from ledger.domain.record.naming import agreement_stream, seal_stream, windows_stream
from ledger.domain.rows.observation import Reason
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import WindowState
from ledger.errors import AgreementNotSigned, NotFound
from tests.unit.app.conftest import Desk, log, make_desk, read_rows, row, share_as_cap, signed_agreement

HOUR_NS = 3600 * 10**9


def record(desk: Desk, data: bytes, span: Interval | None = None) -> RecordedBatch:
    registered = desk.register()
    with desk.database.begin() as tx:
        return record_observations(
            tx,
            registered,
            data,
            read_rows=read_rows,
            declared_complete=span or desk.period.interval,
            now_ns=desk.clock.now_ns(),
        )


def judge(desk: Desk) -> JudgedPeriod:
    registered = desk.register()
    with desk.database.begin() as tx:
        return evaluate_windows(tx, registered, desk.period, read_rows=read_rows)


def issue(desk: Desk) -> IssuedStatement:
    registered, judged = desk.register(), judge(desk)
    with desk.database.begin() as tx:
        return issue_statement(
            tx,
            registered,
            desk.period,
            judged,
            attestor=desk.attestor,
            collector=desk.collector,
            randomness=desk.randomness,
            now_ns=desk.clock.now_ns(),
        )


def events(tx: Transaction, stream: str) -> list[Any]:
    return list(tx.events.stream(stream))


class TestRegistering:
    def test_the_same_document_twice_is_one_event(self, desk: Desk) -> None:
        desk.register()
        registered = desk.register()
        with desk.database.read() as tx:
            assert len(events(tx, agreement_stream(registered.sla_id))) == 1

    @pytest.mark.parametrize("party", ["issuer", "customer"])
    def test_a_signature_of_another_document_is_refused(self, desk: Desk, party: str) -> None:
        document = dict(desk.agreement.document)
        other = {**document["signatures"], party: "00" * 64}
        forged = Agreement.from_document({**document, "signatures": other})
        with desk.database.begin() as tx, pytest.raises(AgreementNotSigned) as refused:
            register_agreement(
                tx,
                forged,
                attestor=desk.attestor,
                verify=verify,
                terms_version=1,
                registration=None,
                customer_signature=None,
                now_ns=0,
            )
        assert refused.value.data["party"] == party

    def test_a_changed_term_breaks_both_signatures(self, desk: Desk) -> None:
        changed = Agreement.from_document({**desk.agreement.document, "tier": "silver"})
        with desk.database.begin() as tx, pytest.raises(AgreementNotSigned):
            register_agreement(
                tx,
                changed,
                attestor=desk.attestor,
                verify=verify,
                terms_version=1,
                registration=None,
                customer_signature=None,
                now_ns=0,
            )
        with desk.database.read() as tx:
            assert tx.log.size() == 0


class TestRecording:
    def test_each_row_has_its_verdict(self, desk: Desk) -> None:
        batch = record(
            desk,
            log(
                row("a"),
                row("a"),
                row("a", e2e_s=9.5),
                row("b", service="other"),
                row("c", at="2022-06-14T10:00:00Z"),
                row("d", ttft_s=-1),
            ),
        )
        counts = batch.counts
        assert (counts.accepted, counts.duplicates, counts.conflicts) == (1, 1, 1)
        assert counts.rejected == {Reason.OTHER_SERVICE: 1, Reason.OUTSIDE_PERIOD: 1, Reason.LATENCY_NEGATIVE: 1}

    def test_the_same_batch_again_changes_nothing(self, desk: Desk) -> None:
        first, again = record(desk, log(row("a"))), record(desk, log(row("a")))
        assert again.receipt == first.receipt
        assert again.counts == first.counts

    def test_one_log_may_be_recorded_under_two_agreements(self, desk: Desk) -> None:
        batch = log(row("a"))
        first = record(desk, batch)
        other = replace(desk, agreement=Agreement.from_document(signed_agreement(nonce="0x" + "22" * 32)))
        second = record(other, batch)
        assert second.receipt.stream != first.receipt.stream
        assert second.counts.accepted == 1

    def test_a_replay_split_differently_counts_once(self, desk: Desk) -> None:
        record(desk, log(row("a"), row("b")))
        replayed = record(desk, log(row("b"), row("c")))
        assert (replayed.counts.accepted, replayed.counts.duplicates) == (1, 1)
        assert judge(desk).windows[10].cells[0].valid == 3

    def test_another_body_in_a_later_batch_is_a_conflict_and_counts_as_failed(self, desk: Desk) -> None:
        record(desk, log(row("a")))
        assert record(desk, log(row("a", e2e_s=2.5))).counts.conflicts == 1
        availability = judge(desk).windows[10].cells[0]
        assert (availability.good, availability.valid) == (0, 1)


class TestJudging:
    def test_an_hour_without_rows_in_a_complete_log_is_idle_not_missing(self, desk: Desk) -> None:
        record(desk, log(row("a")))
        windows = judge(desk).windows
        assert len(windows) == 24
        assert all(window.state is WindowState.OBSERVED for window in windows)
        assert [window.idle for window in windows].count(False) == 1

    def test_without_a_declaration_of_completeness_nothing_is_observed(self, desk: Desk) -> None:
        registered = desk.register()
        with desk.database.begin() as tx:
            record_observations(tx, registered, log(row("a")), read_rows=read_rows, declared_complete=None, now_ns=0)
        assert {window.state for window in judge(desk).windows} == {WindowState.NO_DATA}

    def test_judging_again_appends_nothing_and_new_facts_append_what_changed(self, desk: Desk) -> None:
        record(desk, log(row("a")))
        judge(desk)
        stream = windows_stream(desk.attestor.sla_id(desk.agreement), desk.period.first)
        with desk.database.read() as tx:
            assert len(events(tx, stream)) == 24
        judge(desk)
        with desk.database.read() as tx:
            assert len(events(tx, stream)) == 24
        record(desk, log(row("b")))
        second = judge(desk)
        registered = desk.register()
        with desk.database.read() as tx:
            assert load_windows(tx, registered, desk.period) == second


class TestIssuing:
    def test_a_statement_is_sealed_signed_and_queued_for_its_proof(self, desk: Desk) -> None:
        record(desk, log(row("a"), row("b", error_code=500)))
        issued = issue(desk)
        assert issued.settlement.state is SettlementState.SETTLED
        with desk.database.read() as tx:
            payload = issued_event(tx, issued.id).payload
            assert payload["objectives"][0] == {
                "id": "availability",
                "good": 1,
                "valid": 2,
                "target": "99.95",
                "state": "breached",
            }
            assert len(events(tx, seal_stream(int(payload["seal_key"])))) == 1
            assert tx.outbox.pending() == 1

    def test_issuing_again_gives_the_same_statement(self, desk: Desk) -> None:
        record(desk, log(row("a")))
        first, again = issue(desk), issue(desk)
        assert again.receipt == first.receipt
        with desk.database.read() as tx:
            assert tx.outbox.pending() == 1

    def test_late_facts_give_another_version_and_edit_none(self, desk: Desk) -> None:
        record(desk, log(row("a")))
        first = issue(desk)
        with desk.database.read() as tx:
            before = issued_event(tx, first.id).payload
        record(desk, log(row("late", error_code=500)))
        second = issue(desk)
        assert (first.id[-3:], second.id[-3:], second.version) == (".v1", ".v2", 2)
        with desk.database.read() as tx:
            assert issued_event(tx, first.id).payload == before
            assert issued_event(tx, second.id).payload["restates"]["statement_id"] == first.id

    def test_below_the_coverage_floor_it_is_withheld_and_not_proved(self, desk: Desk) -> None:
        start_ns = desk.period.interval.start_ns
        record(desk, log(row("a")), Interval(start_ns + 8 * HOUR_NS, start_ns + 12 * HOUR_NS))
        issued = issue(desk)
        assert issued.settlement.state is SettlementState.WITHHELD
        with desk.database.read() as tx:
            payload = issued_event(tx, issued.id).payload
            assert (payload["credit"], payload["observed"], payload["state"]) == (None, 4, "withheld")
            assert payload["telemetry_root"] is not None
            assert tx.outbox.pending() == 0

    def test_terms_that_no_circuit_attests_settle_unproved_and_say_why(self) -> None:
        desk = make_desk("agreement-impact.yaml", compensation=share_as_cap("agreement-impact.yaml"))
        record(desk, log(row("a", error_code=500)))
        issued = issue(desk)
        with desk.database.read() as tx:
            payload = issued_event(tx, issued.id).payload
            assert payload["attestable"] is False
            assert "a cap is a percentage" in payload["unattested_reasons"][0]
            assert payload["credit"] is not None
            assert payload["seal_key"] is None
            assert tx.outbox.pending() == 0
            with pytest.raises(NotFound, match="nothing is sealed"):
                build_opening(tx, issued.id)

    def test_an_unknown_statement_is_not_found(self, desk: Desk) -> None:
        with desk.database.read() as tx, pytest.raises(NotFound):
            issued_event(tx, "000000000000.2023-06-14.v1")


class TestInputs:
    """What a window was judged from."""

    def judged(self, desk: Desk) -> list[tuple[str, list[str]]]:
        judge(desk)
        stream = windows_stream(desk.attestor.sla_id(desk.agreement), desk.period.first)
        with desk.database.read() as tx:
            last = {event.payload["index"]: event.payload for event in tx.events.stream(stream)}
        return [(last[index]["state"], last[index]["inputs"]) for index in sorted(last)]

    def hour(self, desk: Desk, hour: int, *bodies: dict[str, Any]) -> str:
        start_ns = desk.period.interval.start_ns + hour * HOUR_NS
        return record(desk, log(*bodies), Interval(start_ns, start_ns + HOUR_NS)).digest

    def test_hourly_batches_of_a_day_name_one_digest_a_window(self, desk: Desk) -> None:
        digests = [self.hour(desk, at, row(f"r{at}", at=f"2023-06-14T{at:02}:10:00Z")) for at in range(24)]
        assert self.judged(desk) == [("observed", [digest]) for digest in digests]

    def test_a_batch_of_another_day_is_behind_no_window(self, desk: Desk) -> None:
        record(desk, log(row("a")))
        self.hour(desk, 24, row("b", at="2023-06-15T00:10:00Z"))
        assert {len(digests) for _, digests in self.judged(desk)} == {1}

    def test_an_id_in_conflict_names_the_batches_of_all_its_bodies_in_each_of_their_windows(self, desk: Desk) -> None:
        early = self.hour(desk, 3, row("a", at="2023-06-14T03:10:00Z"))
        late = self.hour(desk, 9, row("a", at="2023-06-14T09:10:00Z"), row("b", at="2023-06-14T09:20:00Z"))
        found = self.judged(desk)
        assert found[3] == found[9] == ("observed", sorted([early, late]))
        assert found[4] == ("no_data", [])

    def test_a_late_batch_states_only_the_windows_it_has_rows_in(self, desk: Desk) -> None:
        for at in range(24):
            self.hour(desk, at, row(f"r{at}", at=f"2023-06-14T{at:02}:10:00Z"))
        before = self.judged(desk)
        late = self.hour(desk, 5, row("late", at="2023-06-14T05:30:00Z"))
        after = self.judged(desk)
        assert [at for at, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [5]
        assert late in after[5][1]
        stream = windows_stream(desk.attestor.sla_id(desk.agreement), desk.period.first)
        with desk.database.read() as tx:
            assert len(events(tx, stream)) == 25
