"""The read models as the use cases see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Views(Protocol):
    """Read models, derived from events alone; each row names the ``seq`` it reflects."""

    def agreements(self) -> Sequence[Mapping[str, Any]]: ...

    def agreements_page(
        self, *, sla_ids: frozenset[str] | None = None, after: str | None = None, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Up to ``limit`` rows of ``agreements`` by sla_id, from the one after ``after`` on."""
        ...

    def agreement(self, sla_id: str) -> Mapping[str, Any]:
        """Raises ``NotFound``."""
        ...

    def statements(self, sla_id: str | None = None) -> Sequence[Mapping[str, Any]]: ...

    def statements_page(
        self,
        *,
        sla_ids: frozenset[str] | None = None,
        after: tuple[int, str] | None = None,
        before_ns: int | None = None,
        newest: bool = False,
        limit: int,
    ) -> Sequence[Mapping[str, Any]]:
        """Up to ``limit`` rows of ``statements`` by (start of the period, id), from the place ``after`` on, of periods
        that start before ``before_ns``.

        With ``newest`` those alone that no other version replaced.
        """
        ...

    def statement(self, statement_id: str) -> Mapping[str, Any]:
        """Raises ``NotFound``."""
        ...

    def unbatched(self, start: int, end: int, limit: int) -> Sequence[Mapping[str, Any]]:
        """What a batch over the places [start, end) of the log is about, of every tenant and by place:
        {tenant, statement_id, seq, proved}.

        One row for each proof, and one for each statement that will have none; the first ``limit`` proofs and
        statements are looked at. ``seq`` is the place of the proof's event, or of the statement's.
        """
        ...

    def due_statements(
        self, now_ns: int, *, after: tuple[int, str] | None = None, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Up to ``limit`` {statement_id, sla_id, due_ns} of draft statements that late facts are taken for until
        ``due_ns`` at most ``now_ns``, by (due_ns, statement_id), from the place ``after`` on."""
        ...

    def open_anchors(self, chain_id: int, *, after: str | None = None, limit: int) -> Sequence[Mapping[str, Any]]:
        """Up to ``limit`` {statement_id, tx_hash, block_number, block_hash, confirmations} of anchors on a chain that
        are confirmed and not final, by statement_id, from the one after ``after`` on."""
        ...

    def windows(self, sla_id: str, period: str) -> Sequence[Mapping[str, Any]]:
        """The newest judgement of every window of a period, by index."""
        ...

    def tenants(self) -> Sequence[str]:
        """Every tenant that has an agreement: the one question that reaches across tenants."""
        ...

    def credits(
        self,
        *,
        sla_ids: frozenset[str] | None = None,
        after: tuple[int, str] | None = None,
        before_ns: int | None = None,
        newest: bool = False,
        limit: int,
    ) -> Sequence[Mapping[str, Any]]:
        """Up to ``limit`` credits by (start of the period, statement's id), from the place ``after`` on, of periods
        that start before ``before_ns``.

        With ``newest`` those alone of statements that no other version replaced.

        {statement_id, sla_id, period, currency, minor_units, status, proof_ref, seq}. ``status`` is ``issued``: a
        credit exists from its statement on. ``proof_ref`` is the hash of the proof that it follows from the sealed
        counts, or null while there is none.
        """
        ...

    def windows_page(self, sla_id: str, period: str, *, after: int | None, limit: int) -> Sequence[Mapping[str, Any]]:
        """``windows`` in pages: up to ``limit`` from the index after ``after`` on."""
        ...

    def violations(
        self,
        *,
        sla_ids: frozenset[str] | None = None,
        state: str | None = None,
        objective: str | None = None,
        after: tuple[int, str] | None = None,
        before_ns: int | None = None,
        limit: int,
    ) -> Sequence[Mapping[str, Any]]:
        """Up to ``limit`` violations by (start, id), from the place ``after`` on, that start before ``before_ns``.

        {id, sla_id, objective, state (open, closed, withdrawn), start_ns, end_ns, period, service, indicator, target,
        revision, first_window, windows, good, valid, bad, worst, evidence, ended_by, reason, doc_sha256,
        clause, unit, credit, seq}; clause and unit are None where an early version recorded it.
        ``credit`` is the sum of its credit lines, {currency, minor_units}; None while it has none.
        """
        ...

    def violation(self, violation_id: str) -> Mapping[str, Any]:
        """Raises ``NotFound``."""
        ...

    def exclusions(self, sla_id: str) -> Sequence[Mapping[str, Any]]:
        """Every exclusion of an agreement, by (start, id), withdrawn ones among them.

        {exclusion_id, sla_id, state (recorded, withdrawn), clause, ticket, from_ns, to_ns, announced_at_ns,
        approved_by, reason, by, withdrawn_reason, withdrawn_by, seq}.
        """
        ...

    def credit_lines(
        self,
        *,
        sla_ids: frozenset[str] | None = None,
        statement_id: str | None = None,
        status: str | None = None,
        after: tuple[int, str] | None = None,
        before_ns: int | None = None,
        limit: int,
    ) -> Sequence[Mapping[str, Any]]:
        """Up to ``limit`` credit lines by (start of the period, id), from the place ``after`` on, of periods that
        start before ``before_ns``.

        {id, statement_id, sla_id, start_ns, status, customer, period, objective, violation_id, currency, minor_units,
        reverses, reversed_by, reason, billing, proof_due, proof_ref, anchor_tx, line_seq, seq}. ``line_seq`` is the
        place of the event that set the line, ``seq`` of the last one that the row reflects.
        """
        ...

    def credit_line(self, line_id: str) -> Mapping[str, Any]:
        """Raises ``NotFound``."""

    def credit_totals(self, sla_id: str) -> Mapping[str, int]:
        """What is owed under an agreement: the sum of all its credit lines and reversal entries, in minor units by
        currency. Empty where it has none."""
        ...

    def evidence(self, service: str, start_ns: int, end_ns: int, limit: int) -> Sequence[Mapping[str, Any]]:
        """What was recorded about a service in [start_ns, end_ns), the most telling first."""
        ...

    def telemetry_source(self, service: str, source: str) -> Mapping[str, Any] | None:
        """Which batch a source recorded last about a service."""
        ...

    def webhooks(self) -> Sequence[Mapping[str, Any]]:
        """{id, url, types, scopes, secrets, old_secret_until_ns, state, reason, by, seq} of every endpoint, by id."""
        ...
