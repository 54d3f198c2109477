"""Lies about agreement, statement, log and telemetry, by an issuer who holds the keys of all parties.

The issuer's signature is redone in every case, so it masks nothing; where a lie needs more, it goes on to sign with
the other keys, too. Each must fail in the check named beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ledger.attest.checks.verification import Exit, Outcome
from ledger.attest.commitments import telemetry
from ledger.attest.commitments.attestation_context import window_counts
from ledger.attest.crypto import babyjub
from ledger.attest.crypto.signing import NoteKey, SigningKey
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import DocumentInvalid
from ledger.merkle.checkpoint import Checkpoint, parse_checkpoint
from tests.support import examples
from tests.support.forging import Forger
from tests.support.lies import Lie, Lies, bumped, change, flipped, issued, logged, put, require_caught, then

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        examples.remember_pairings(patch)
        yield


# --- agreement and statement -------------------------------------------------------------------


def other_terms(forged: Forger) -> None:
    """A base a hundredth as large, signed by both parties and followed through statement, trace and log."""
    forged.bundle["agreement"]["compensation"]["base"] = "80.00"
    forged.agree()
    forged.issued["doc_sha256"] = Agreement.from_document(forged.bundle["agreement"]).doc_sha256.hex()
    forged.log()


def other_agreement(forged: Forger) -> None:
    forged.bundle["agreement"]["nonce"] = "0x" + "ab" * 32
    forged.agree()


def left_undecided(forged: Forger) -> None:
    """The failed request said to be undecided: no verdict, no credit, and so neither proof nor seal to hold it to."""
    issued = forged.issued
    issued["objectives"][0] |= {"undecided": 1, "state": "insufficient_data"}
    reason = "availability has counts that its data leave undecided, which no circuit adds up"
    step = {**issued["trace"]["tiers"][0], "below_ppb": None, "credit_bps": 0, "tier": None}
    nothing = {"numerator": "0", "denominator": "1"}
    amounts = dict.fromkeys(("tier_amount", "combined_amount", "capped_amount"), nothing)
    trace = issued["trace"] | amounts | {"combined_bps": 0, "payable": False, "credit": "0"}
    issued["trace"] = trace | {"tiers": [step, *issued["trace"]["tiers"][1:]]}
    issued["credit"] = {"currency": "USD", "minor_units": "0"}
    issued.update(attestable=False, unattested_reasons=[reason], seal_key=None, telemetry_root=None)
    forged.bundle.update(proof=None, anchor=None, context=None, base=None, telemetry=None, seals=[])
    forged.log()


def less_time(forged: Forger) -> None:
    """Claims and facts about the first of March taken until the last of it, not until the first of April."""
    forged.issued["accepts_until_ns"] = str(parse_instant_ns("2024-03-31T00:00:00Z"))
    forged.log()


def no_time(forged: Forger) -> None:
    """Terms with a deadline, signed by both parties, and a statement that says nothing of it."""
    deadline = {"kind": "days_after_period", "count": 90}
    forged.bundle["agreement"]["settlement"] = {"mode": "claim", "deadline": deadline}
    forged.agree()
    forged.issued["doc_sha256"] = Agreement.from_document(forged.bundle["agreement"]).doc_sha256.hex()
    forged.log()


def of_tenant(member: str, tenant: str) -> Lie:
    """An event of another tenant, in a stream that has the same name there."""
    return logged(put(f"{member}.header.tenant", tenant))


AGREEMENT: Lies = {
    "a target lowered": (put("agreement.objectives.0.target", "99"), {"agreement", "terms"}),
    "a base lowered": (put("agreement.compensation.base", "80.00"), {"agreement", "base"}),
    "the service renamed": (put("agreement.service.name", "other"), {"agreement", "terms"}),
    "another collector": (
        put("agreement.collector.babyjubjub_public_key", dict(zip("xy", map(str, babyjub.BASE), strict=True))),
        {"agreement", "collector signature"},
    ),
    "the customer's signature altered": (change("agreement.signatures.customer", flipped), {"agreement"}),
    "the issuer's signature altered": (change("agreement.signatures.issuer", flipped), {"agreement"}),
    "the issuer signs for the customer": (
        lambda f: put("agreement.signatures.customer", f.bundle["agreement"]["signatures"]["issuer"])(f),
        {"agreement"},
    ),
    "other terms signed by both": (other_terms, {"telemetry", "terms", "base", "verdict"}),
    "another agreement signed by both": (other_agreement, {"agreement", "context", "log inclusion"}),
    "a calendar without end": (
        put("agreement.effective", {"from": "9999-12-30", "until": "9999-12-31"}),
        {"agreement", "period"},
    ),
}

STATEMENT: Lies = {
    "a count altered": (change("statement.payload.objectives.0.good", lambda n: n - 1), {"log inclusion", "verdict"}),
    "a count altered and logged": (issued("objectives.0.good", 72), {"verdict"}),
    "more good than valid": (issued("objectives.1.good", 73), {"verdict"}),
    "a breach called met": (issued("objectives.0.state", "met"), {"verdict", "summary"}),
    "objectives in another order": (
        logged(change("statement.payload.objectives", lambda found: found[::-1])),
        {"verdict"},
    ),
    "an objective left out": (logged(change("statement.payload.objectives", lambda found: found[1:])), {"verdict"}),
    "another target": (issued("objectives.0.target", "98"), {"verdict"}),
    "no credit": (issued("credit", {"currency": "USD", "minor_units": "0"}), {"verdict", "credit"}),
    "credit in another money": (issued("credit.currency", "JPY"), {"verdict"}),
    "the credit left out": (issued("credit", None), {"verdict", "credit"}),
    "a step of the credit altered": (issued("trace.combined_bps", 100), {"verdict"}),
    "a step that only equals by type": (issued("trace.payable", 1), {"verdict"}),
    "no steps": (issued("trace", {}), {"verdict"}),
    "idle hours hidden": (issued("idle", 1), {"summary"}),
    "more idle than observed": (issued("idle", 25), {"period"}),
    "an hour unobserved": (issued("observed", 23), {"verdict", "summary"}),
    "an hour excluded": (issued("excluded", 1), {"period", "summary"}),
    "another number of windows": (issued("windows", 25), {"period"}),
    "another start": (issued("start_ns", "1709251200000000001"), {"period"}),
    "another end": (issued("end_ns", "1709337600000000001"), {"period"}),
    "another day": (issued("period", "2024-03-02/P1D"), {"period", "context"}),
    "a day outside the agreement": (issued("period", "2024-04-02/P1D"), {"period"}),
    "a period in a second spelling": (issued("period", "2024-03-01/P01D"), {"period"}),
    "a period of another length": (issued("period", "2024-03-01/P2D"), {"period"}),
    "no period at all": (issued("period", "2024-02-31/P1D"), {"period"}),
    "another name": (issued("statement_id", "x.2024-03-01.v1"), {"log inclusion"}),
    "another sla_id": (issued("sla_id", "0x" + "ab" * 32), {"agreement"}),
    "another doc_sha256": (issued("doc_sha256", "ab" * 32), {"agreement"}),
    "terms version 2": (issued("terms_version", 2), {"context", "anchor"}),
    "statement version 2": (issued("statement_version", 2), {"log inclusion", "context", "anchor"}),
    "withheld with a proof": (issued("state", "withheld"), {"verdict"}),
    "called not attestable": (issued("attestable", False), {"verdict"}),
    "a reason not to prove": (issued("unattested_reasons", ["too expensive"]), {"verdict"}),
    "requests called undecided": (left_undecided, {"verdict"}),
    "another unit": (logged(lambda f: f.issued["objectives"][0].update(unit="minutes")), {"verdict"}),
    "another seal key": (issued("seal_key", "7"), {"telemetry"}),
    "no seal key": (issued("seal_key", None), {"telemetry"}),
    "less time to claim": (less_time, {"period"}),
    "no time to claim, where the terms give some": (no_time, {"period"}),
    "another telemetry root": (issued("telemetry_root", "7"), {"telemetry"}),
}


# --- log ---------------------------------------------------------------------------------------


def restate(**changes: Any) -> Lie:
    """A checkpoint with other values, signed by the log."""

    def lie(forged: Forger) -> None:
        found = parse_checkpoint(forged.bundle["log"]["checkpoint"].partition("\n\n")[0] + "\n")
        values = {"origin": found.origin, "size": found.size, "root": found.root} | changes
        forged.checkpoint(Checkpoint(**values))

    return lie


def another_logs_key(forged: Forger) -> None:
    """A log of the same name under a key of its own."""
    key = NoteKey(forged.origin, SigningKey(b"\x07" * 32))
    forged.secrets = type(forged.secrets)(forged.secrets.by_name | {"log": b"\x07" * 32})
    forged.log()
    forged.bundle["log"]["vkey"] = key.key.vkey()


LOG: Lies = {
    "a payload salt altered": (change("statement.salt", flipped), {"log inclusion"}),
    "a seal's salt altered": (change("seals.0.salt", flipped), {"log inclusion"}),
    "a path node altered": (change("statement.inclusion.0", flipped), {"log inclusion"}),
    "a path node dropped": (change("statement.inclusion", lambda path: path[1:]), {"log inclusion"}),
    "a path extended": (change("statement.inclusion", lambda path: [*path, "00" * 32]), {"log inclusion"}),
    "two path nodes swapped": (
        change("statement.inclusion", lambda path: [path[1], path[0], *path[2:]]),
        {"log inclusion"},
    ),
    "an empty path": (put("statement.inclusion", []), {"log inclusion"}),
    "another place in the log": (change("statement.seq", lambda seq: seq + 1), {"log inclusion"}),
    "a place beyond the log": (put("statement.seq", 2**53 - 1), {"log inclusion"}),
    "another type": (logged(put("statement.header.type", "block_sealed")), {"log inclusion"}),
    "another schema version": (logged(put("statement.header.schema", 3)), {"log inclusion"}),
    "another stream": (logged(put("statement.header.stream", "elsewhere")), {"log inclusion"}),
    "another version of the stream": (logged(put("statement.header.version", 1)), {"log inclusion"}),
    "a seal in another stream": (logged(put("seals.0.header.stream", "seal/7")), {"log inclusion"}),
    "a seal replaced in its stream": (logged(put("seals.0.header.version", 1)), {"log inclusion"}),
    "a seal of another tenant": (of_tenant("seals.0", "other"), {"log inclusion"}),
    "a second first version, of another tenant": (
        then(of_tenant("statement", "other"), of_tenant("seals.0", "other")),
        {"pin: tenant"},
    ),
    "issued before its period was over": (
        logged(put("statement.header.recorded_at_ns", "1709337599999999999")),
        {"log inclusion"},
    ),
    "sealed after the statement": (
        lambda f: f.log([f.bundle["statement"], *f.bundle["seals"]]),
        {"log inclusion"},
    ),
    "a larger size": (restate(size=1000), {"log inclusion"}),
    "a smaller size": (restate(size=1), {"log inclusion"}),
    "another root": (restate(root=b"\x07" * 32), {"log inclusion"}),
    "another origin": (restate(origin="example.com/log"), {"log checkpoint", "log inclusion", "pin: log"}),
    "a checkpoint altered after signing": (
        change("log.checkpoint", lambda note: note.replace("\n87\n", "\n88\n")),
        {"log checkpoint"},
    ),
    "a checkpoint without a signature": (
        change("log.checkpoint", lambda note: note.partition("\n\n")[0] + "\n"),
        {"log checkpoint"},
    ),
    "no checkpoint": (put("log.checkpoint", "nothing"), {"log checkpoint", "pin: log"}),
    "another verifier key": (
        put("log.vkey", NoteKey("example.com/log", SigningKey(b"\x07" * 32)).key.vkey()),
        {"log checkpoint", "pin: log"},
    ),
    "another key under the same name": (another_logs_key, {"pin: log"}),
    "a mistyped verifier key": (change("log.vkey", lambda key: key[:-2] + "AA"), {"log checkpoint", "pin: log"}),
}


# --- telemetry ---------------------------------------------------------------------------------


def other_counts(forged: Forger) -> None:
    """Healthier counts sealed, signed by the collector and logged as if they had been there from the start."""
    agreement = Agreement.from_document(forged.bundle["agreement"])
    cells = tuple(Cell(3, 0) for _ in agreement.objectives)
    windows = tuple(Window(Interval(i, i + 1), WindowState.OBSERVED, cells) for i in range(24))
    key = int(forged.issued["seal_key"])
    blocks = telemetry.block_hashes(key, window_counts(windows), [1])
    root = str(telemetry.telemetry_root(key, 24, blocks))
    forged.seal["payload"]["block_hash"] = str(blocks[0])
    forged.bundle["telemetry"] |= {"blocks": [str(blocks[0])], "root": root}
    forged.issued["telemetry_root"] = root
    forged.collect().log()


def signed_by_another_collector(forged: Forger) -> None:
    forged.secrets = type(forged.secrets)(forged.secrets.by_name | {"collector": b"\x07" * 32})
    forged.collect()


def sealed_twice(forged: Forger) -> None:
    """The same block as a second one, in the stream's next version."""
    again = Forger(forged.bundle, forged.secrets).seal
    again["header"]["version"] = 1
    forged.bundle["seals"].append(again)
    forged.log()


TELEMETRY: Lies = {
    "a block hash altered": (change("telemetry.blocks.0", bumped), {"telemetry"}),
    "a root altered": (change("telemetry.root", bumped), {"telemetry", "collector signature", "telemetry signal"}),
    "another number of windows": (put("telemetry.windows", 23), {"telemetry"}),
    "a block more": (change("telemetry.blocks", lambda found: [*found, "0"]), {"telemetry"}),
    "no telemetry": (put("telemetry", None), {"telemetry", "telemetry signal"}),
    "the collector's S altered": (change("telemetry.signature.s", bumped), {"collector signature"}),
    "the collector's S in a second spelling": (
        change("telemetry.signature.s", lambda s: str(int(s) + babyjub.SUBGROUP_ORDER)),
        {"collector signature"},
    ),
    "the collector's R8 altered": (change("telemetry.signature.r8.x", bumped), {"collector signature"}),
    "signed by another collector": (signed_by_another_collector, {"collector signature"}),
    "other counts sealed, signed and logged": (other_counts, {"telemetry signal"}),
    "no seals": (logged(put("seals", [])), {"telemetry", "verification key"}),
    "a seal twice": (change("seals", lambda found: found * 2), {"telemetry", "log inclusion"}),
    "a block sealed twice": (sealed_twice, {"telemetry"}),
    "the seal of another day": (
        logged(put("seals", [dict(examples.bundle("bundle_next_day")["seals"][0])])),
        {"telemetry", "log inclusion"},
    ),
    "a seal of another block": (logged(put("seals.0.payload.block", 1)), {"telemetry"}),
    "a seal of other windows": (logged(put("seals.0.payload.first_window", 25)), {"telemetry"}),
    "a seal of fewer windows": (logged(put("seals.0.payload.windows", 23)), {"telemetry"}),
    "a seal of another hash": (logged(change("seals.0.payload.block_hash", bumped)), {"telemetry"}),
    "a seal under another key": (logged(put("seals.0.payload.seal_key", "7")), {"telemetry"}),
    "a seal of another agreement": (logged(put("seals.0.payload.sla_id", "0x" + "ab" * 32)), {"telemetry"}),
}


# Within one size of the tree (87 or 88 leaves) paths look alike; a log that signs both has signed two roots for
# one history, which consistency proofs show and no single bundle can.

LIES: Lies = {
    f"{group}: {name}": case
    for group, cases in {
        "agreement": AGREEMENT,
        "statement": STATEMENT,
        "log": LOG,
        "telemetry": TELEMETRY,
    }.items()
    for name, case in cases.items()
}

ONLY = {
    "log: another key under the same name": {"pin: log"},
    "log: a second first version, of another tenant": {"pin: tenant"},
    "statement: requests called undecided": {"verdict", "telemetry"},
    "statement: less time to claim": {"period"},
    "telemetry: other counts sealed, signed and logged": {"telemetry signal"},
}


def test_without_a_lie_everything_holds() -> None:
    report = examples.verified(examples.forger(), opening=examples.opening())
    assert not examples.failed(report)
    assert report.exit_code(accept_dev=True) is Exit.HOLDS


def test_signing_everything_again_is_no_lie() -> None:
    """The forger's tools are sound: what they redo verifies, so a failure below is due to the lie alone."""
    forged = examples.forger().agree().collect().log().transact()
    assert not examples.failed(examples.verified(forged, opening=examples.opening()))


@pytest.mark.parametrize("name", LIES)
def test_a_lie_fails_in_its_check(name: str) -> None:
    lie, named = LIES[name]
    forged = examples.forger()
    lie(forged)
    require_caught(forged, named)


@pytest.mark.parametrize("name", ONLY)
def test_nothing_but_one_check_stands_against_these(name: str) -> None:
    forged = examples.forger()
    LIES[name][0](forged)
    assert examples.failed(examples.verified(forged)) == ONLY[name]


def test_an_agreement_without_signatures_is_no_bundle() -> None:
    forged = examples.forger()
    del forged.bundle["agreement"]["signatures"]
    with pytest.raises(DocumentInvalid, match=r"agreement\.signatures: is missing"):
        examples.verified(forged)


# --- withheld periods, and what a bundle cannot show ---

WITHHELD: Lies = {
    "called settled": (issued("state", "settled"), {"verdict"}),
    "with a credit": (issued("credit", {"currency": "USD", "minor_units": "1"}), {"verdict"}),
    "with steps": (issued("trace", {"credit": "1"}), {"verdict"}),
    "with a state": (issued("objectives.0.state", "met"), {"verdict"}),
    "observed enough": (issued("observed", 24), {"verdict"}),
    "every window excluded": (issued("excluded", 24), {"period"}),
    "with a proof": (put("proof", dict(examples.bundle()["proof"])), {"verdict", "context"}),
    "with an anchor": (put("anchor", dict(examples.bundle()["anchor"])), {"verdict"}),
    "with a context": (put("context", dict(examples.bundle()["context"])), {"verdict"}),
    "with a base": (put("base", dict(examples.bundle()["base"])), {"verdict"}),
    "with a credit salt": (put("credit_salt", "7"), {"verdict"}),
    "without telemetry": (put("telemetry", None), {"telemetry"}),
    "another block": (change("telemetry.blocks.0", bumped), {"telemetry"}),
}


def test_a_withheld_statement_verifies_and_says_that_it_is_unproved() -> None:
    report = examples.verified(examples.forger("bundle_withheld"))
    assert not examples.failed(report)
    assert report.exit_code(accept_dev=False) is Exit.HOLDS
    (line,) = [line for line in report.lines if line.check == "proof"]
    assert line.outcome is Outcome.NOT_CHECKED
    assert "0 of 24 windows" in line.detail
    assert any("stated counts" in text for text in report.not_established)


@pytest.mark.parametrize("name", WITHHELD)
def test_a_lie_about_a_withheld_statement_fails(name: str) -> None:
    lie, named = WITHHELD[name]
    forged = examples.forger("bundle_withheld")
    lie(forged)
    assert named <= examples.failed(examples.verified(forged))


def withheld_by_a_lie() -> Forger:
    """The breach of the first day turned into a withheld statement: no verdict, no credit, no proof."""
    forged = examples.forger()
    forged.issued.update(observed=3, idle=0, state="withheld", credit=None, trace={})
    for result in forged.issued["objectives"]:
        result["state"] = "withheld"
    forged.bundle.update(proof=None, anchor=None, context=None, base=None)
    return forged.log()


def test_only_the_opening_shows_that_a_period_was_withheld_by_a_lie() -> None:
    report = examples.verified(withheld_by_a_lie())
    assert not examples.failed(report)
    assert any("stated counts" in text for text in report.not_established)
    assert examples.failed(examples.verified(withheld_by_a_lie(), opening=examples.opening())) == {"opening"}


def test_only_the_opening_shows_other_totals_of_the_same_states_and_credit() -> None:
    forged = examples.forger()
    forged.issued["objectives"][1]["good"] -= 1
    forged.issued["trace"]["tiers"][1]["good"] -= 1
    report = examples.verified(forged.log())
    assert not examples.failed(report)
    assert any("stated counts beyond" in text for text in report.not_established)
    assert examples.failed(examples.verified(forged, opening=examples.opening())) == {"opening"}


def test_only_the_opening_shows_other_counts_of_a_withheld_period() -> None:
    """Without a credit there are no steps that its counts would have to fit."""
    forged = examples.forger("bundle_withheld")
    forged.issued["objectives"][0]["valid"] += 1
    assert not examples.failed(examples.verified(forged.log()))
    assert examples.failed(examples.verified(forged, opening=examples.opening("opening_withheld"))) == {"opening"}


@pytest.mark.parametrize("lie", [put("anchor.block_number", 1), change("anchor.block_hash", flipped)])
def test_in_which_block_the_transaction_stands_is_for_the_chain_to_say(lie: Lie) -> None:
    forged = examples.forger()
    lie(forged)
    report = examples.verified(forged)
    assert not examples.failed(report)
    assert any("in which block" in text for text in report.not_established)
