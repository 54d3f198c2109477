"""Whether a notice that cut a period was in the log before the day on which it ended the terms.

A party may end an agreement alone. One that chose the day afterwards could cut off the hours in which it failed.
"""

from __future__ import annotations

from ledger.app.agreements.registering import AGREEMENT_TERMINATED
from ledger.attest.checks.case import Case, require, require_same
from ledger.attest.checks.log_checks import require_logged, signed_checkpoint
from ledger.domain.record.naming import agreement_stream


def in_time(case: Case) -> bool:
    """Whether nobody could choose the day by what had happened: both parties signed, or the log had it before."""
    notice, logged = case.notice, case.bundle.get("notice")
    if notice is None or logged is None:
        return notice is None or len(notice.signed_by) > 1
    before = int(logged["header"]["recorded_at_ns"]) < case.agreement.day_ns(notice.effective)
    return before or len(notice.signed_by) > 1


def notice(case: Case) -> str:
    """What logged the notice is in the log, with the notice that ended the terms."""
    given, logged = case.notice, case.bundle.get("notice")
    if given is None:
        require(logged is None, "the log of a notice is given, and no notice ended the terms")
        return "no notice ended the terms"
    if logged is not None:
        require_same(logged["payload"]["notice"], given.document, "another notice was logged than the one given")
        stream, version = agreement_stream("0x" + case.sla_id.hex()), logged["header"]["version"]
        require_logged(logged, signed_checkpoint(case), AGREEMENT_TERMINATED, stream, version)
    signers = " and ".join(given.signed_by)
    if not in_time(case):
        return (
            f"no entry shows that the notice was given before {given.effective}: that its day was not chosen later "
            f"is the word of the {signers}"
        )
    if len(given.signed_by) > 1:
        return f"both parties agreed to end on {given.effective}"
    return f"the notice of the {signers} was logged before {given.effective}, by the log's clock"
