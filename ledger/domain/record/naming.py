"""Names of streams and statements: derived from what they are about, so that a verifier derives them again."""

from __future__ import annotations

import re
from datetime import date

_LINE_ID = re.compile(r"([A-Za-z0-9._-]{1,120})\.l[0-9]{4,7}(?:\.r)?", re.ASCII)

LOG_KEYS_STREAM = "log/keys"
"""Rotations of the log's signing key; stream version v leaves the key number v, counted from 0."""


def agreement_stream(sla_id: str) -> str:
    """Versions of one agreement; stream version v holds terms version v + 1."""
    return f"agreement/{sla_id}"


def observations_stream(sla_id: str, source: str) -> str:
    """Batches of facts a source reported for one agreement."""
    return f"observations/{sla_id}/{source}"


def telemetry_batch_stream(service: str, batch_id: str) -> str:
    """One batch of telemetry about a service; it is recorded once, as version 0."""
    return f"samples/{service}/{batch_id}"


def breaker_stream(service: str) -> str:
    """Transitions of a service's circuit breakers, in the order they came in."""
    return f"breakers/{service}"


def quality_stream(sla_id: str) -> str:
    """Rows of one agreement's facts that say what no honest source says."""
    return f"quality/{sla_id}"


def exclusions_stream(sla_id: str) -> str:
    """What is excluded from the counts of one agreement: recorded and withdrawn."""
    return f"exclusions/{sla_id}"


def windows_stream(sla_id: str, first: date) -> str:
    """Judgements of the windows of the period that starts on local date ``first``."""
    return f"windows/{sla_id}/{first.isoformat()}"


def violations_stream(sla_id: str, first: date) -> str:
    """Violations found in the windows of the period that starts on local date ``first``."""
    return f"violations/{sla_id}/{first.isoformat()}"


def credit_lines_stream(statement_id: str) -> str:
    """The credit lines of one statement: issued, reversed, applied."""
    return f"credits/{statement_id}"


def charges_stream(sla_id: str, first: date) -> str:
    """The charges of the period that starts on local date ``first``; a later version replaces those before."""
    return f"charges/{sla_id}/{first.isoformat()}"


def claims_stream(sla_id: str, first: date) -> str:
    """The claims for credits of the period that starts on local date ``first``."""
    return f"claims/{sla_id}/{first.isoformat()}"


def closing_stream(sla_id: str, first: date) -> str:
    """The closing of the period that starts on local date ``first``; it happens once, as version 0. What follows are
    changes of its facts since."""
    return f"closings/{sla_id}/{first.isoformat()}"


def seal_stream(seal_key: int) -> str:
    """Sealed blocks of one period: stream version j seals block j for the first time, later ones replace blocks. Two
    leaves with one version prove equivocation."""
    return f"seal/{seal_key}"


def telemetry_stream(seal_key: int) -> str:
    """The collector's signatures over the telemetry roots of one sealed period, one for each root."""
    return f"telemetry/{seal_key}"


def statement_stream(sla_id: str, first: date) -> str:
    """Statements of one period; stream version v holds statement version v + 1."""
    return f"statement/{sla_id}/{first.isoformat()}"


def finality_stream(statement_id: str) -> str:
    """That a statement is final; it happens once, as version 0."""
    return f"finality/{statement_id}"


def attestation_stream(statement_id: str) -> str:
    """What was proved and anchored of one statement."""
    return f"attestation/{statement_id}"


def batches_stream(target: str) -> str:
    """Batches of statements for one chain: stream version 2n forms batch n, the next one says where it was published.
    No batch is formed before the one before it was published."""
    return f"batches/{target}"


def registry_stream(chain_id: int, registry: str) -> str:
    """What others did at one registry, in the order it was seen."""
    return f"registry/{chain_id}/{registry}"


def webhook_stream(endpoint_id: str) -> str:
    """How one webhook endpoint stood over time."""
    return f"webhook/{endpoint_id}"


def erasure_stream(event_id: str) -> str:
    """The erasure of one event's payload; it happens once, as version 0. The database's guard knows this name."""
    return f"erasure/{event_id}"


def statement_id(sla_id: str, first: date, statement_version: int) -> str:
    """Short readable name: first 12 hex digits of slaId, first local date, version (``1f0c3a9b7e21.2023-12-19.v1``)."""
    return f"{sla_id[2:14]}.{first.isoformat()}.v{statement_version}"


def violation_id(sla_id: str, first: date, objective: str, first_window: int) -> str:
    """Follows from what a violation is about, so that finding it again finds the same one
    (``1f0c3a9b7e21.2023-12-19.availability.w3``: agreement, first local date, objective, first window)."""
    return f"{sla_id[2:14]}.{first.isoformat()}.{objective}.w{first_window}"


def claim_id(sla_id: str, first: date, violation: str | None) -> str:
    """Follows from what is claimed, so that it is claimed once: the violation, or what none stands for."""
    return f"{violation or f'{sla_id[2:14]}.{first.isoformat()}'}.claim"


def credit_line_id(statement_id: str, number: int) -> str:
    """Line ``number`` of a statement, counted from 1: ``1f0c3a9b7e21.2023-12-19.v1.l0001``."""
    return f"{statement_id}.l{number:04}"


def reversal_line_id(line_id: str) -> str:
    """The entry that takes a credit line back; a line has at most one."""
    return f"{line_id}.r"


def statement_of_line(line_id: str) -> str | None:
    """The statement a credit line or its reversal belongs to; None for a text that names no line."""
    found = _LINE_ID.fullmatch(line_id)
    return None if found is None else found[1]
