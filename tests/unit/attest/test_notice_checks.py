"""A notice that one party gave ends the terms: it was in the log before its day, or the report says that it was not."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.attest.checks.case import Case
from ledger.attest.checks.notice_checks import in_time, notice
from ledger.attest.checks.report import Outcome
from ledger.attest.checks.verification import read_bundle, verify_bundle
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.naming import agreement_stream
from ledger.domain.terms.termination import notice_message, unsigned_notice
from ledger.errors import BundleCheckFailed, SlaLedgerError
from tests.support import examples
from tests.support.forging import Forger

pytestmark = pytest.mark.slow

DAY = "2024-03-02"
"""On which the example's period ends, so that it is a whole one either way."""
EVENT_ID = "01a22878-3ec8-7a03-907e-8e061aae31bc"


def ended(*signers: str, logged_after_ns: int | None = -1, **payload: Any) -> Forger:
    """The example under terms that a notice ended, logged so long after its day began; None: not logged."""
    forged = examples.forger()
    sla_id, digest = forged.issued["sla_id"], forged.issued["doc_sha256"]
    unsigned = unsigned_notice(sla_id, digest, DAY, "moved to another provider")
    signatures = {name: forged.secrets.key(name).sign(notice_message(unsigned)).hex() for name in signers}
    forged.bundle["ended_by"] = {**unsigned, "signatures": signatures}
    if logged_after_ns is None:
        return forged
    day_ns = int(forged.issued["end_ns"])
    forged.bundle["notice"] = {
        "seq": 0,
        "header": {
            **forged.bundle["statement"]["header"],
            "id": EVENT_ID,
            "recorded_at_ns": str(day_ns + logged_after_ns),
            "schema": 1,
            "stream": agreement_stream(sla_id),
            "type": "agreement_terminated",
            "version": 1,
        },
        "payload": {
            "sla_id": sla_id,
            "doc_sha256": digest,
            "terms_version": 1,
            "effective_ns": str(day_ns),
            "notice": forged.bundle["ended_by"],
            "document": forged.bundle["agreement"],
            **payload,
        },
        "salt": "00" * 32,
        "inclusion": [],
    }
    return forged


def signed(forged: Forger) -> Case:
    events = [forged.bundle["notice"]] if "notice" in forged.bundle else []
    forged.log([*events, *forged.bundle["seals"], forged.bundle["statement"]])
    return Case(forged.bundle)


def test_one_that_was_logged_before_its_day_could_not_be_dated_back() -> None:
    case = signed(ended("issuer"))
    assert in_time(case)
    assert notice(case) == "the notice of the issuer was logged before 2024-03-02, by the log's clock"


@pytest.mark.parametrize("logged_after_ns", [None, 0, 30 * 86_400 * 10**9])
def test_a_period_that_the_issuer_cut_afterwards_is_said_to_be(logged_after_ns: int | None) -> None:
    """The issuer alone ends the terms before the hours in which it failed: every signature holds."""
    forged = ended("issuer", logged_after_ns=logged_after_ns)
    assert not in_time(signed(forged))
    report = verify_bundle(read_bundle(forged.sign()), examples.trust())
    (line,) = (each for each in report.lines if each.check == "notice")
    assert line.outcome is Outcome.NOT_CHECKED
    assert "that its day was not chosen later is the word of the issuer" in line.detail


def test_what_both_parties_signed_needs_no_entry() -> None:
    case = signed(ended("issuer", "customer", logged_after_ns=None))
    assert in_time(case)
    assert notice(case) == "both parties agreed to end on 2024-03-02"


def test_the_entry_of_another_notice_fails() -> None:
    forged = ended("issuer")
    other = {**forged.bundle["ended_by"], "effective": "2024-03-20"}
    with pytest.raises(BundleCheckFailed, match="another notice was logged"):
        notice(signed(ended("issuer", notice=other)))


def test_an_entry_that_is_not_in_the_log_fails() -> None:
    case = signed(ended("issuer", logged_after_ns=5))
    case.bundle["notice"]["header"]["recorded_at_ns"] = "7"
    assert in_time(case)
    with pytest.raises(SlaLedgerError):
        notice(case)


def test_an_entry_without_a_notice_fails() -> None:
    forged = ended("issuer")
    del forged.bundle["ended_by"]
    forged.log([forged.bundle["notice"], *forged.bundle["seals"], forged.bundle["statement"]])
    report = verify_bundle(read_bundle(canonical_bytes(forged.bundle)), examples.trust())
    assert "notice" in examples.failed(report)
