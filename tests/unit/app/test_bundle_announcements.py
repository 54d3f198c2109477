"""A bundle shows what logged the maintenance that its statement leaves out."""

from __future__ import annotations

from typing import Any

from ledger.app.bundles.building import build_bundle
from ledger.app.periods.exclusions import ExclusionDesk
from ledger.attest.checks.announcement_checks import unlogged
from ledger.attest.checks.case import Case
from ledger.attest.checks.report import Outcome
from ledger.attest.checks.verification import read_bundle, verify_bundle
from ledger.attest.crypto.signing import NoteKey, SigningKey
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from tests.unit.app.conftest import ISSUER, Desk, make_desk, row
from tests.unit.app.test_exclusions import MEMBERS, asked
from tests.unit.app.test_restating import HOUR_NS, at_the_end, close, hand_in, statements

LOG_KEY = NoteKey("example.com/log", SigningKey(b"\x05" * 32))


def bundle(*, logged_ns: int, withdrawn_later: bool = False) -> dict[str, Any]:
    """The bundle of a day with a release at ten o'clock, which was logged so long after the day began."""
    desk = make_desk(**MEMBERS)
    desk.clock.now = desk.period.interval.start_ns + logged_ns
    sla_id = desk.register().sla_id
    exclusions = ExclusionDesk(desk.database, desk.attestor, desk.clock)
    exclusions.record(sla_id, asked())
    at_the_end(desk)
    hand_in(desk, row("a"))
    close(desk)
    if withdrawn_later:
        exclusions.withdraw(sla_id, "release-7", reason="called off")
    return _built(desk)


def _built(desk: Desk) -> dict[str, Any]:
    with desk.database.begin() as tx:
        size = tx.log.size()
        note = sign_checkpoint(Checkpoint(LOG_KEY.key.name, size, tx.log.root(size)), [LOG_KEY])
        tx.log.save_checkpoint(size, tx.log.root(size), note.decode())
        name = statements(desk)[0]["statement_id"]
        made = build_bundle(tx, name, vkey=LOG_KEY.key.vkey(), sign=SigningKey(ISSUER).sign, attestor=desk.attestor)
    return dict(read_bundle(made))


def line(found: dict[str, Any]) -> Outcome:
    (outcome,) = (each.outcome for each in verify_bundle(found).lines if each.check == "announcements")
    return outcome


def test_one_that_was_logged_before_it_began_passes_and_a_later_one_is_not_checked() -> None:
    assert line(bundle(logged_ns=9 * HOUR_NS)) is Outcome.PASS
    found = bundle(logged_ns=11 * HOUR_NS)
    assert line(found) is Outcome.NOT_CHECKED
    assert unlogged(Case(found)) == ["release-7"]


def test_what_happened_to_it_after_the_statement_changes_nothing() -> None:
    assert line(bundle(logged_ns=9 * HOUR_NS, withdrawn_later=True)) is Outcome.PASS


def test_one_that_is_left_out_of_the_bundle_is_not_checked() -> None:
    found = bundle(logged_ns=9 * HOUR_NS)
    del found["announcements"]
    assert line(found) is Outcome.NOT_CHECKED
