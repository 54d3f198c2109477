"""Sealed counts are held against the logged batches by whoever kept those."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ledger.app.bundles.building import build_opening
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.app.settlement.sealing import seals_of
from ledger.attest.checks.case import Case
from ledger.attest.checks.opening import opening, windows_opened
from ledger.attest.checks.recount import LoggedFacts, batches_named, recount
from ledger.attest.checks.report import Exit, Outcome
from ledger.attest.checks.verification import read_opening, verify_bundle
from ledger.attest.commitments.attestation_context import window_counts
from ledger.attest.commitments.telemetry import block_hashes, telemetry_root
from ledger.cli.main import main
from ledger.cli.verify import logged_facts
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import BundleCheckFailed, DocumentInvalid
from tests.support import examples
from tests.unit.app.conftest import Desk, log, make_desk, read_rows, row
from tests.unit.app.test_restating import HOUR_NS, at_the_end, close, failed, hand_in, statements
from tests.unit.app.test_sealed_again import desk_for, sample

pytestmark = pytest.mark.slow

DISPUTE = {"carve_outs": [{"id": "dispute", "kind": "dispute", "reason": "both agree"}]}


def settled(desk: Desk, *batches: tuple[dict[str, Any], ...]) -> tuple[Case, dict[str, Any], dict[str, bytes]]:
    """The case of a day's statement, its opening, and the batches by their digests."""
    for rows in batches:
        hand_in(desk, *rows)
    close(desk)
    said = statements(desk)[-1]
    with desk.database.read() as tx:
        opening = dict(read_opening(build_opening(tx, said["statement_id"])))
        seals = [{"payload": dict(each.payload)} for each in seals_of(tx, int(said["seal_key"]), 1)]
    bundle = {"agreement": desk.agreement.document, "statement": {"payload": said}, "seals": seals}
    kept = [log(*rows) for rows in batches]
    return Case(bundle), opening, {hashlib.sha256(data).hexdigest(): data for data in kept}


def facts(kept: Mapping[str, bytes]) -> LoggedFacts:
    return LoggedFacts(kept.get, read_rows)


@pytest.fixture
def desk() -> Desk:
    return at_the_end(make_desk())


def test_the_batches_give_what_was_sealed(desk: Desk) -> None:
    """An id that comes in two batches, too, and a row that says something else in the second."""
    case, opening, kept = settled(desk, (row("a"), failed("b", 3)), (row("a"), failed("c", 3), row("b")))
    assert set(batches_named(case)) == set(kept)
    assert recount(case, opening, facts(kept)) == "2 logged batch(es), counted again, give every count of 24 windows"


def test_samples_are_counted_again_too() -> None:
    case, opening, kept = settled(desk_for(), (row("a"),), (sample("s", 3, good=90, bad=2),))
    assert recount(case, opening, facts(kept)).startswith("2 logged")


def test_what_an_exclusion_takes_out_of_a_window_is_not_counted() -> None:
    desk = at_the_end(make_desk(**DISPUTE))
    desk.register()
    from_ns = desk.period.interval.start_ns + 3 * HOUR_NS
    asked = AskedExclusion("d", "dispute", from_ns, from_ns + HOUR_NS // 2, "both agree", approved_by="board")
    ExclusionDesk(desk.database, desk.attestor, desk.clock).record(desk.attestor.sla_id(desk.agreement), asked)
    case, opening, kept = settled(desk, (row("a"), failed("b", 3)))
    assert opening["windows"][3]["cells"]["availability"] == {"good": 0, "bad": 0}
    assert recount(case, opening, facts(kept))


def test_an_opening_leaves_out_the_windows_that_exclusions_cover_and_no_others() -> None:
    """A proof counts the windows that are left out. Which they are only the opening shows: the quiet hour is excluded
    and a bad one was sealed as if it were."""
    desk = at_the_end(make_desk(**DISPUTE))
    desk.register()
    from_ns = desk.period.interval.start_ns + 3 * HOUR_NS
    asked = AskedExclusion("d", "dispute", from_ns, from_ns + HOUR_NS, "both agree", approved_by="board")
    ExclusionDesk(desk.database, desk.attestor, desk.clock).record(desk.attestor.sla_id(desk.agreement), asked)
    case, opened, _ = settled(desk, (row("a"),))
    assert opened["windows"][3]["state"] == "excluded"
    assert opening(case, opened)
    lie = json.loads(canonical_bytes(opened))
    lie["windows"][3], lie["windows"][7] = lie["windows"][7], lie["windows"][3]
    with pytest.raises(BundleCheckFailed, match="window 3 is observed by the opening, and an exclusion covers it"):
        opening(sealed_as(case, lie), lie)


def sealed_as(case: Case, opened: dict[str, Any]) -> Case:
    """The statement as it would be if these windows had been sealed from the start."""
    windows, salts = windows_opened(case, opened), [int(salt) for salt in opened["salts"]]
    root = telemetry_root(case.seal_key, len(windows), block_hashes(case.seal_key, window_counts(windows), salts))
    issued = {**case.issued, "telemetry_root": str(root)}
    return Case({**case.bundle, "statement": {"payload": issued}})


def test_a_difference_names_window_and_objective(desk: Desk) -> None:
    case, opening, kept = settled(desk, (row("a"), failed("b", 3)))
    lie = json.loads(canonical_bytes(opening))
    lie["windows"][3]["cells"]["availability"] = {"good": 1, "bad": 0}
    with pytest.raises(BundleCheckFailed) as caught:
        recount(case, lie, facts(kept))
    assert "window 3 (2023-06-14T03:00:00Z), availability: 0 good and 1 bad are logged, 1 and 0 are sealed" in str(
        caught.value
    )


def test_a_request_that_was_invented_or_dropped_shows(desk: Desk) -> None:
    case, opening, kept = settled(desk, (row("a"), failed("b", 3)))
    (digest,) = kept
    for rows in ((row("a"),), (row("a"), failed("b", 3), failed("c", 5))):
        with pytest.raises(BundleCheckFailed, match="are logged"):
            recount(case, opening, facts({digest: log(*rows)}))


def lines(given: LoggedFacts) -> dict[str, Any]:
    report = verify_bundle(examples.bundle(), examples.trust(), examples.opening(), (), given)
    return {line.check: line for line in report.lines}


def test_without_all_batches_nothing_is_held_against_the_seals() -> None:
    report = verify_bundle(examples.bundle(), examples.trust(), examples.opening(), (), facts({}))
    assert report.exit_code(accept_dev=True) is Exit.NOT_PINNED
    line = lines(facts({}))["recount"]
    assert line.outcome is Outcome.NOT_CHECKED
    assert "1 of 1 batches that the seals name are not among the facts" in line.detail


def test_what_no_seal_names_is_counted() -> None:
    """A batch that was dropped whole is named by no seal; whoever kept it sees that it was not counted."""
    desk = at_the_end(make_desk())
    case, opened, kept = settled(desk, (row("a"),))
    given = LoggedFacts(kept.get, read_rows, frozenset({*kept, "ab" * 32}))
    assert recount(case, opened, given).endswith("; of what was given, 1 other file(s) are named by no seal")


def test_a_file_that_changes_after_it_was_found_is_not_at_hand(tmp_path: Path) -> None:
    path = tmp_path / "batch.ndjson"
    path.write_bytes(b"as it was logged")
    given = logged_facts([path])
    (digest,) = given.digests
    assert given.read(digest) == b"as it was logged"
    path.write_bytes(b"as it would be better")
    assert given.read(digest) is None


def test_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert logged_facts([tmp_path]).digests == frozenset()
    with pytest.raises(DocumentInvalid, match="is no regular file; save what it gives to one first"):
        logged_facts([tmp_path / "pipe"])


def test_a_folder_of_files_is_searched_by_digest(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case, opening, kept = settled(desk, (row("a"),), (failed("b", 3),))
    (tmp_path / "inner").mkdir()
    for number, data in enumerate(kept.values()):
        (tmp_path / "inner" / f"{number}.ndjson").write_bytes(data)
    (tmp_path / "notes.txt").write_text("nothing of interest")
    assert recount(case, opening, logged_facts([tmp_path]))
    bundle, opened = tmp_path / "bundle.json", tmp_path / "opening.json"
    bundle.write_bytes(canonical_bytes(examples.bundle()))
    opened.write_bytes(canonical_bytes(examples.opening()))
    assert main(["verify", str(bundle), "--facts", str(tmp_path)]) == 2
    assert "--opening" in capsys.readouterr().err
    main(["verify", str(bundle), "--opening", str(opened), "--facts", str(tmp_path)])
    assert "NOT CHECKED  recount" in capsys.readouterr().out
