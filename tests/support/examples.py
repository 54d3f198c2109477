"""The committed example bundles, and how tests put a question to the verifier."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.checks import case, incident_checks, verification
from ledger.attest.checks import statement_checks as checks
from ledger.attest.checks.verification import Outcome, Report
from ledger.attest.crypto.groth16 import check_proof
from ledger.attest.crypto.verification_key import VerificationKey, parse_verification_key
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import ProofInvalid
from tests.support.forging import Forger
from tests.support.secrets import Secrets

VECTORS = Path(__file__).resolve().parents[1] / "vectors"


@functools.cache
def bundle(name: str = "bundle") -> Mapping[str, Any]:
    """``bundle`` (a breach, proved), ``bundle_next_day`` (all met, proved) or ``bundle_withheld``; do not change it."""
    return verification.read_bundle((VECTORS / f"{name}.json").read_bytes())


@functools.cache
def opening(name: str = "opening") -> Mapping[str, Any]:
    """``opening`` or ``opening_withheld``."""
    return verification.read_opening((VECTORS / f"{name}.json").read_bytes())


@functools.cache
def trust() -> Mapping[str, Any]:
    """The honest pins for all of them."""
    return verification.read_trust((VECTORS / "trust.json").read_bytes())


def forger(name: str = "bundle") -> Forger:
    return Forger(bundle(name), Secrets.of_vectors())


def verified(forged: Forger, **given: Any) -> Report:
    """The report on a forged bundle, read from its bytes, against the honest pins."""
    return verification.verify_bundle(verification.read_bundle(forged.sign()), trust(), **given)


def failed(report: Report) -> set[str]:
    """The checks that failed."""
    return {line.check for line in report.lines if line.outcome is Outcome.FAIL}


@functools.cache
def _key(document: bytes) -> VerificationKey:
    return parse_verification_key(json.loads(document))


@functools.cache
def _refusal(key: VerificationKey, signals: Sequence[int], proof: bytes) -> ProofInvalid | None:
    try:
        check_proof(key, signals, proof)
    except ProofInvalid as refused:
        return refused
    return None


def _check_once(key: VerificationKey, signals: Sequence[int], proof: bytes) -> None:
    refused = _refusal(key, signals, proof)
    if refused is not None:
        raise refused.with_traceback(None)


def remember_pairings(patch: pytest.MonkeyPatch) -> None:
    """Let equal questions to the pairing be answered once: hundreds of bundles differ in everything but the proof.

    What one file has asked is remembered in the next. Every answer still comes from the real functions.
    """
    patch.setattr(case, "parse_verification_key", lambda document: _key(canonical_bytes(document)))
    for module in (checks, incident_checks):
        patch.setattr(module, "check_proof", _check_once)
