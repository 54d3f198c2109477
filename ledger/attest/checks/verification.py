"""Verifying a bundle offline: every check, every pin, and what neither can establish."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ledger.app.bundles.building import BUNDLE_FORMAT, OPENING_FORMAT
from ledger.app.ports.store import Randomness
from ledger.attest.checks import (
    announcement_checks,
    incident_checks,
    log_checks,
    notice_checks,
    probe_checks,
    root_checks,
    seal_checks,
)
from ledger.attest.checks import statement_checks as checks
from ledger.attest.checks.bundle_schema import BUNDLE, MAX_BUNDLE_BYTES, MAX_TRUST_BYTES, OPENING, TRUST, TRUST_FORMAT
from ledger.attest.checks.case import Case
from ledger.attest.checks.chain_checks import on_chain
from ledger.attest.checks.json_rpc import Ask
from ledger.attest.checks.opening import opening as check_opening
from ledger.attest.checks.pins import pin_lines, proofs_of
from ledger.attest.checks.recount import LoggedFacts, batches_named, recount
from ledger.attest.checks.report import (
    CHAIN,
    DEV_KEY,
    DEV_KEY_SAID,
    RECOUNT,
    UNREADABLE,
    Exit,
    Line,
    OnChain,
    Outcome,
    Report,
    Stands,
)
from ledger.attest.crypto.groth16 import check_proofs
from ledger.attest.crypto.pair import OneProof
from ledger.attest.crypto.verification_key import VerificationKey
from ledger.domain.record.canonical import parse_canonical, parse_json
from ledger.domain.schema import Object
from ledger.errors import DocumentInvalid, SlaLedgerError

__all__ = [
    "DEV_KEY",
    "MAX_BUNDLE_BYTES",
    "MAX_TRUST_BYTES",
    "WITNESS_QUORUM",
    "Exit",
    "Line",
    "Outcome",
    "Report",
    "read_bundle",
    "read_document",
    "read_opening",
    "read_trust",
    "verify_bundle",
    "verify_bundles",
]

WITNESS_QUORUM = "witness quorum"

_ALWAYS: tuple[tuple[str, Callable[[Case], str]], ...] = (
    ("issuer signature", checks.issuer_signature),
    ("agreement", checks.agreement),
    ("period", checks.period),
    ("log checkpoint", log_checks.log),
    ("log inclusion", log_checks.inclusion),
    ("restatement", log_checks.restatement),
    ("telemetry", checks.sealed_telemetry),
    ("verdict", checks.verdict),
)
_SEALED: tuple[tuple[str, Callable[[Case], str]], ...] = (("collector signature", checks.collector_signature),)
_PROVED: tuple[tuple[str, Callable[[Case], str]], ...] = (
    ("context", checks.context),
    ("terms", checks.terms),
    ("telemetry signal", checks.telemetry_signal),
    ("base", checks.base),
    ("summary", checks.summary),
    ("credit", checks.credit),
    ("verification key", checks.key),
    ("proof", checks.proof),
)
_INCIDENTS: tuple[tuple[str, Callable[[Case], str]], ...] = (
    ("incidents", incident_checks.terms_and_tiers),
    ("incident credit", incident_checks.total),
    ("incident key", incident_checks.key),
    ("incident proof", incident_checks.proof),
)


_FILES = {BUNDLE_FORMAT: "a bundle", OPENING_FORMAT: "an opening", TRUST_FORMAT: "a trust file"}
"""What a verifier is given, by the formats: files are easily mixed up."""


def read_bundle(data: bytes) -> Mapping[str, Any]:
    """A bundle from its exact canonical bytes; raises ``DocumentInvalid`` or ``NotCanonical``."""
    return read_document(parse_canonical(data, max_bytes=MAX_BUNDLE_BYTES), BUNDLE, "bundle")


def read_opening(data: bytes) -> Mapping[str, Any]:
    """An opening; raises ``DocumentInvalid`` or ``NotCanonical``."""
    return read_document(parse_json(data, max_bytes=MAX_BUNDLE_BYTES), OPENING, "opening")


def read_trust(data: bytes) -> Mapping[str, Any]:
    """A trust file; raises ``DocumentInvalid`` or ``NotCanonical``."""
    return read_document(parse_json(data, max_bytes=MAX_TRUST_BYTES), TRUST, "trust file")


def verify_bundle(
    bundle: Mapping[str, Any],
    trust: Mapping[str, Any] | None = None,
    opening: Mapping[str, Any] | None = None,
    asks: Sequence[Ask] = (),
    facts: LoggedFacts | None = None,
) -> Report:
    """Check a bundle that ``read_bundle`` gave, against pins, an opening and nodes where they are given.

    With ``facts`` the opened counts are counted again. Never raises.
    """
    return _report(Case(bundle), trust, opening, asks, facts)


def verify_bundles(
    bundles: Sequence[Mapping[str, Any]],
    trust: Mapping[str, Any] | None,
    randomness: Randomness,
    asks: Sequence[Ask] = (),
) -> tuple[Report, ...]:
    """The reports on several bundles, in their order; proofs under one key are checked together. Never raises.

    Where they do not all hold, each is checked by itself, so that the report on the false one says so.
    ``randomness`` must be unpredictable to whoever made the bundles (``groth16.check_proofs``).
    """
    cases = [Case(bundle) for bundle in bundles]
    _check_together(cases, randomness)
    return tuple(_report(case, trust, None, asks) for case in cases)


def _check_together(cases: Sequence[Case], randomness: Randomness) -> None:
    """Mark the proofs that hold together with all others under their key."""
    under: dict[bytes, list[tuple[Case, OneProof, VerificationKey, str]]] = {}
    for case in cases:
        # What does not even have a key, or six signals, is for its own line to say.
        with contextlib.suppress(SlaLedgerError, *UNREADABLE):
            found = (case, case.one, case.verification_key, "proof_holds")
            under.setdefault(case.one.circuit_id, []).append(found)
            if "incident_proof" in case.bundle:
                second = (case, case.incident_one, case.incident_key, "incident_proof_holds")
                under.setdefault(case.incident_one.circuit_id, []).append(second)
    for together in under.values():
        with contextlib.suppress(SlaLedgerError, *UNREADABLE):
            claims = [(one.signals, one.proof) for _, one, _, _ in together]
            check_proofs(together[0][2], claims, randomness)
            for case, _, _, held in together:
                setattr(case, held, True)


def _report(
    case: Case,
    trust: Mapping[str, Any] | None,
    opening: Mapping[str, Any] | None,
    asks: Sequence[Ask],
    facts: LoggedFacts | None = None,
) -> Report:
    bundle = case.bundle
    lines = [_line(case, name, check) for name, check in _ALWAYS]
    if bundle["telemetry"] is not None:
        lines += [_line(case, name, check) for name, check in _SEALED]
        lines.append(_seal_times(case))
    lines += [*_announcements(case), *_notice(case)]
    if probe_checks.concerns_probe(bundle):
        lines.append(_probe(case))
    if bundle["proof"] is not None:
        lines += [*(_line(case, name, check) for name, check in _PROVED), _anchor(case)]
        if "incident_proof" in bundle:
            lines += [_line(case, name, check) for name, check in _INCIDENTS]
        dev = any(proof["manifest"]["dev_unsafe"] for proof in proofs_of(bundle))
        if dev:
            lines.append(Line(DEV_KEY, Outcome.ASSUMED, DEV_KEY_SAID))
    else:
        dev = False
        lines.append(Line("proof", Outcome.NOT_CHECKED, "the statement is unproved: " + _why_unproved(bundle)))
    if opening is not None:
        lines.append(_line(case, "opening", lambda case: check_opening(case, opening)))
        if facts is not None:
            lines.append(_recounted(case, opening, facts))
    else:
        lines.append(Line("opening", Outcome.NOT_CHECKED, "no counts were given; the totals stand as stated"))
    lines += root_checks.root_lines(case, trust)
    lines += _asked(case, asks)
    lines += pin_lines(bundle, trust)
    witnessed = False
    if trust is not None and "witnesses" in trust:
        witnesses = trust["witnesses"]
        lines.append(_line(case, WITNESS_QUORUM, lambda case: log_checks.witness_quorum(case, witnesses)))
        witnessed = lines[-1].outcome is Outcome.PASS
    standing = {line.check for line in lines if line.outcome is Outcome.PASS}
    not_established = _not_established(bundle, dev, standing, opened=opening is not None, witnessed=witnessed)
    return Report(tuple(lines), not_established, dev, tuple(_on_chain(bundle, standing)))


def _published_alone(bundle: Mapping[str, Any]) -> bool:
    """Whether a statement is on its registry's chain by a batch root alone: recording it is left to who demands it."""
    context = bundle["context"]
    if bundle["anchor"] is not None or context is None:
        return False
    home = context["chain_id"], context["registry"]
    return any((root["chain_id"], root["registry"]) == home for root in bundle.get("roots", ()))


def _anchor(case: Case) -> Line:
    if _published_alone(case.bundle):
        return Line(
            "anchor",
            Outcome.NOT_CHECKED,
            "the registry was not asked to check and record it: its batch root alone is published",
        )
    return _line(case, "anchor", checks.anchor)


def _asked(case: Case, asks: Sequence[Ask]) -> Iterator[Line]:
    """What the nodes say: of the anchor, and of the roots on the chains that they are on."""
    recorded = not _published_alone(case.bundle)
    anchor, nodes, unasked = root_checks.routed(case, asks, recorded=recorded)
    if anchor is not None and recorded:
        yield from on_chain(case, anchor)
    yield from root_checks.roots_on_chain(case, nodes)
    yield from unasked


def read_document(value: Any, shape: Object, what: str) -> Mapping[str, Any]:
    """A document of a closed shape; raises ``DocumentInvalid`` that says which document is not of it."""
    try:
        shape.check(value, "")
    except DocumentInvalid as error:
        is_a = _FILES.get(str(value.get("format"))) if isinstance(value, dict) else None
        why = error.message if is_a is None or is_a.endswith(what) else f"this is {is_a}"
        raise DocumentInvalid(f"the {what} is not of its format: {why}", **error.data) from error
    return dict(value)


def _line(case: Case, name: str, check: Callable[[Case], str]) -> Line:
    try:
        return Line(name, Outcome.PASS, check(case))
    except SlaLedgerError as error:
        return Line(name, Outcome.FAIL, error.message)
    except UNREADABLE as error:
        # A hostile value may reach a library that refuses it in its own words (a date past the calendar's end).
        # What cannot be evaluated does not hold; a traceback would leave the reader without the other lines.
        return Line(name, Outcome.FAIL, f"cannot be evaluated ({type(error).__name__}: {error})")


def _seal_times(case: Case) -> Line:
    """Late seals break no rule and show nothing about the time before them."""
    line = _line(case, "seal times", seal_checks.seal_times)
    if line.outcome is Outcome.PASS and not seal_checks.on_time(case):
        return replace(line, outcome=Outcome.NOT_CHECKED)
    return line


def _announcements(case: Case) -> Iterator[Line]:
    """Only where something was left out for maintenance, or somebody says so."""
    if not case.issued.get("exclusions") and "announcements" not in case.bundle:
        return
    line = _line(case, "announcements", announcement_checks.announcements)
    late = line.outcome is Outcome.PASS and announcement_checks.unlogged(case)
    if line.outcome is not Outcome.PASS or announcement_checks.announced(case):
        yield replace(line, outcome=Outcome.NOT_CHECKED) if late else line


def _notice(case: Case) -> Iterator[Line]:
    """Only where a notice ended the terms, or somebody says that one was logged."""
    if "notice" in case.bundle or case.bundle.get("ended_by", {}).get("kind") == "Termination":
        line = _line(case, "notice", notice_checks.notice)
        late = line.outcome is Outcome.PASS and not notice_checks.in_time(case)
        yield replace(line, outcome=Outcome.NOT_CHECKED) if late else line


def _recounted(case: Case, opening: Mapping[str, Any], facts: LoggedFacts) -> Line:
    """What is missing may hold any counts, so without all batches no count is held against them."""
    named = batches_named(case)
    missing = [digest for digest in named if facts.read(digest) is None]
    if missing:
        detail = f"{len(missing)} of {len(named)} batches that the seals name are not among the facts: {missing[0]}"
        return Line(RECOUNT, Outcome.NOT_CHECKED, detail)
    return _line(case, RECOUNT, lambda case: recount(case, opening, facts))


def _probe(case: Case) -> Line:
    line = _line(case, "probe signature", probe_checks.probe_signature)
    missing = line.outcome is Outcome.PASS and probe_checks.not_signed(case.bundle)
    return replace(line, outcome=Outcome.NOT_CHECKED) if missing else line


def _why_unproved(bundle: Mapping[str, Any]) -> str:
    issued = bundle["statement"]["payload"]
    if issued["state"] == "withheld":
        return f"withheld, {issued['observed']} of {issued['windows']} windows were observed"
    return "; ".join(issued["unattested_reasons"]) or "no reason is given"


def _not_established(
    bundle: Mapping[str, Any], dev: bool, standing: set[str], *, opened: bool, witnessed: bool
) -> tuple[str, ...]:
    """What a reader must find out elsewhere; kept in step with docs/attestation-format.md, section 12.

    ``standing``: the checks that passed.
    """
    found = []
    if bundle["anchor"] is not None and {f"{CHAIN}: block", f"{CHAIN}: event", f"{CHAIN}: final"} <= standing:
        found.append("that the node that was asked tells the truth about its chain")
    elif bundle["anchor"] is not None:
        found.append("whether the anchoring transaction succeeded, in which block it stands, and whether that is final")
    unasked = [each["chain_id"] for each in bundle.get("roots", ()) if not _root_stands(each["chain_id"], standing)]
    if unasked:
        found.append(f"whether its batch roots stand on chain {', '.join(unasked)}")
    if bundle["telemetry"] is not None:
        found.append(f"{root_checks.unsure_when(bundle, standing)}, other than by the log's own clock")
    if not opened:
        proved = " beyond states, coverage and credit" if bundle["proof"] is not None else ""
        found.append(f"the stated counts{proved} (no opening was given)")
    found += [
        "that the collector told the truth",
        "whether a later statement supersedes this one, or other terms this agreement",
    ]
    if not witnessed:
        found.append("that the log shows everyone the same entries")
    if "pin: tenant" not in standing:
        found.append("that the log holds no other statement of this period under another tenant")
    if bundle["proof"] is not None:
        found.append("that the proving key's ceremony was honest" + (" (it is a development key)" if dev else ""))
    return tuple(found)


def _on_chain(bundle: Mapping[str, Any], standing: set[str]) -> Iterator[OnChain]:
    """Where nodes showed the statement, and the batch roots over it; ``standing``: the checks that passed."""
    if {f"{CHAIN}: {name}" for name in ("block", "event", "record")} <= standing:
        yield OnChain(Stands.RECORDED, bundle["context"]["chain_id"], bundle["anchor"]["block_number"])
    for root in bundle.get("roots", ()):
        if {f"{CHAIN} {root['chain_id']}: {name}" for name in root_checks.SHOWN} <= standing:
            yield OnChain(Stands.ROOT, root["chain_id"], root["block_number"])


def _root_stands(chain_id: str, standing: set[str]) -> bool:
    return {f"{CHAIN} {chain_id}: {name}" for name in root_checks.ASKED} <= standing
