"""The rows ``Views`` answers with, put together from view rows; shared by every storage adapter.

Inside the program nanoseconds and minor units are integers of any size; a transport that cannot carry integers
beyond 2^53 writes them as decimal strings. ``seq`` is that of the last event the row reflects, so that a reader
who appended at ``seq`` n knows whether the row is new enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from ledger.domain.credits.restatement import Standing, carries_proof
from ledger.errors import NotFound
from ledger.store.view_rows import (
    ViewRow,
    agreement_row,
    by_start,
    credit_line_row,
    credit_row,
    evidence_row,
    exclusion_row,
    leaf_place,
    roots_at,
    statement_row,
    unbatched_row,
    violation_row,
    webhook_row,
    window_row,
)


class ViewReader(Protocol):
    """Rows of one tenant's views."""

    def rows(self, view: str, **equal: Any) -> Sequence[ViewRow]:
        """The rows of a view whose named columns have these values, in no order."""
        ...

    def rows_among(self, view: str, name: str, values: Collection[str]) -> Sequence[ViewRow]:
        """The rows of a view whose column ``name`` has one of the values, in no order."""
        ...

    def page(
        self,
        view: str,
        order: tuple[str, ...],
        *,
        after: tuple[Any, ...] | None,
        before: Any = None,
        limit: int,
        **equal: Any,
    ) -> Sequence[ViewRow]:
        """The first ``limit`` rows by the columns ``order``, which tell all rows apart, that come after the place
        ``after`` and whose first column is below ``before``. ``equal`` names a value, or a set of them."""

    def tenants(self, view: str) -> Sequence[str]:
        """Whose rows a view has, sorted."""

    def logged(self, view: str, start: int, end: int, limit: int) -> Sequence[tuple[str, ViewRow]]:
        """The first ``limit`` rows, with their tenants, that events at the places [start, end) of the log set."""
        ...

    def covering(self, first: int, last: int) -> Sequence[ViewRow]:
        """The rows of ``view_root``, whosever they are, that cover a place of the log from ``first`` to ``last``."""
        ...

    def telling(self, view: str, service: str, start_ns: int, end_ns: int, limit: int) -> Sequence[ViewRow]:
        """Of a view of evidence the most telling rows of a service that touch [start_ns, end_ns): one of each
        ``series``, by falling severity and then from the newest; see ``telling_order``."""
        ...


_RowsOf: TypeAlias = Callable[[str], Sequence[ViewRow]]
"""The rows of a view, by its name."""


class StoredViews:
    """``ledger.app.ports.views.Views`` over stored view rows."""

    def __init__(self, reader: ViewReader) -> None:
        self._reader = reader

    def agreements(self) -> Sequence[Mapping[str, Any]]:
        """{sla_id, service, terms_version, doc_sha256, document, seq}: the latest terms of each, oldest first."""
        rows = [agreement_row(row) for row in self._reader.rows("view_agreement")]
        return sorted(rows, key=lambda row: int(row["seq"]))

    def agreements_page(
        self, *, sla_ids: frozenset[str] | None = None, after: str | None = None, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        place = None if after is None else (after,)
        rows = self._reader.page("view_agreement", ("sla_id",), after=place, limit=limit, **_given(sla_id=sla_ids))
        return [agreement_row(row) for row in rows]

    def agreement(self, sla_id: str) -> Mapping[str, Any]:
        return agreement_row(_only(self._reader.rows("view_agreement", sla_id=sla_id), "agreement", sla_id))

    def tenants(self) -> Sequence[str]:
        return self._reader.tenants("view_agreement")

    def windows(self, sla_id: str, period: str) -> Sequence[Mapping[str, Any]]:
        """{sla_id, period, index, start_ns, end_ns, state, cells, excluded_requests, exclusions, doc_sha256, seq} by
        index."""
        rows = [window_row(row) for row in self._reader.rows("view_window", sla_id=sla_id, period=period)]
        return sorted(rows, key=lambda row: int(row["index"]))

    def statements(self, sla_id: str | None = None) -> Sequence[Mapping[str, Any]]:
        """By start and version: the payload of ``statement_issued`` with instants and amounts as integers,
        {id, sla_id, period, start_ns, end_ns, statement_version, state, objectives, credit, trace, ...}, and

        * ``attestation``: {circuit, circuit_id, signals, proof_hash, proof, dev_key, seq} or null; where incidents
          pay beside the tiers with ``incident_proof``, the same of the second proof,
        * ``anchor``: {chain_id, registry, tx_hash, block_number, block_hash, leaf, standing, confirmed, confirmations,
          seq} or null. Once it is confirmed, transaction and block are those that were confirmed, and
          ``confirmations`` is how many blocks stood then, its own included; before, it is 0. ``standing`` is recorded,
          confirmed, undone (by a deep reorganisation, and not confirmed again yet) or final,
        * ``roots``: the published batches that cover it, one of each chain at most, by chain id: {chain_id, registry,
          issuer, origin, size, root, batch_root, node, batch_event, tx_hash, block_number, block_hash, confirmations,
          seq}; of a proved statement those with its leaf,
        * ``standing``: draft, final or restated, ``restated_by``: the id of the version that replaced it or null, and
          ``accepts_until_ns``: until when late facts are taken,
        * of a restatement ``restates``, ``reason``, ``objective_deltas`` and ``credit_delta``; null in others.
        """
        found = self._reader.rows("view_statement", **_filter(sla_id))
        return sorted(self._statements(found, self._reader.rows), key=by_start)

    def statements_page(
        self,
        *,
        sla_ids: frozenset[str] | None = None,
        after: tuple[int, str] | None = None,
        before_ns: int | None = None,
        newest: bool = False,
        limit: int,
    ) -> Sequence[Mapping[str, Any]]:
        page = self._newest if newest else self._page_of_statements
        rows = page("view_statement", sla_ids, after, before_ns, limit)
        return self._statements(rows, self._among(rows))

    def open_anchors(self, chain_id: int, *, after: str | None = None, limit: int) -> Sequence[Mapping[str, Any]]:
        page = self._reader.page(
            "view_anchor_confirmation",
            ("statement_id",),
            after=None if after is None else (after,),
            limit=limit,
            standing="confirmed",
            chain_id=str(chain_id),
        )
        return [{**row.body, "statement_id": row.columns["statement_id"]} for row in page]

    def due_statements(
        self, now_ns: int, *, after: tuple[int, str] | None = None, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        order = ("due_ns", "statement_id")
        rows = self._reader.page("view_standing", order, after=after, before=now_ns + 1, limit=limit, standing="draft")
        return [{name: row.columns[name] for name in ("statement_id", "sla_id", "due_ns")} for row in rows]

    def statement(self, statement_id: str) -> Mapping[str, Any]:
        row = _only(self._reader.rows("view_statement", statement_id=statement_id), "statement", statement_id)
        (found,) = self._statements([row], self._among([row]))
        return found

    def credits(
        self,
        *,
        sla_ids: frozenset[str] | None = None,
        after: tuple[int, str] | None = None,
        before_ns: int | None = None,
        newest: bool = False,
        limit: int,
    ) -> Sequence[Mapping[str, Any]]:
        if newest:
            rows = self._newest("view_credit", sla_ids, after, before_ns, limit, credited=1)
        else:
            rows = self._page_of_statements("view_credit", sla_ids, after, before_ns, limit)
        attestations = _by_statement(self._among(rows)("view_attestation"))
        return [credit_row(row, attestations.get(row.columns["statement_id"])) for row in rows]

    def windows_page(self, sla_id: str, period: str, *, after: int | None, limit: int) -> Sequence[Mapping[str, Any]]:
        place = None if after is None else (after,)
        rows = self._reader.page(
            "view_window", ("window_index",), after=place, limit=limit, sla_id=sla_id, period=period
        )
        return [window_row(row) for row in rows]

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
        equal = _given(sla_id=sla_ids, state=state, objective=objective)
        rows = self._reader.page(
            "view_violation", ("start_ns", "violation_id"), after=after, before=before_ns, limit=limit, **equal
        )
        return self._violations(rows)

    def violation(self, violation_id: str) -> Mapping[str, Any]:
        found = self._reader.rows("view_violation", violation_id=violation_id)
        (row,) = self._violations([_only(found, "violation", violation_id)])
        return row

    def exclusions(self, sla_id: str) -> Sequence[Mapping[str, Any]]:
        rows = [exclusion_row(row) for row in self._reader.rows("view_exclusion", sla_id=sla_id)]
        return sorted(rows, key=lambda row: (row["from_ns"], str(row["exclusion_id"])))

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
        # Drafts are stored as issued: whether a proof is due shows in another view.
        stored = "issued" if status == "draft" else status
        equal = _given(sla_id=sla_ids, statement_id=statement_id, status=stored)
        lines: list[dict[str, Any]] = []
        while len(lines) < limit:
            page = self._reader.page(
                "view_credit_line", ("start_ns", "line_id"), after=after, before=before_ns, limit=limit, **equal
            )
            lines += [line for line in self._lines(page) if status in (None, line["status"])]
            if len(page) < limit:
                break
            after = page[-1].columns["start_ns"], page[-1].columns["line_id"]
        return lines[:limit]

    def credit_line(self, line_id: str) -> Mapping[str, Any]:
        (line,) = self._lines([_only(self._reader.rows("view_credit_line", line_id=line_id), "credit line", line_id)])
        return line

    def credit_totals(self, sla_id: str) -> Mapping[str, int]:
        totals: Counter[str] = Counter()
        for row in self._reader.rows("view_credit_line", sla_id=sla_id):
            totals[row.body["currency"]] += int(row.body["minor_units"])
        return totals

    def webhooks(self) -> Sequence[Mapping[str, Any]]:
        return sorted(map(webhook_row, self._reader.rows("view_webhook")), key=lambda row: str(row["id"]))

    def _page_of_statements(
        self,
        view: str,
        sla_ids: frozenset[str] | None,
        after: tuple[int, str] | None,
        before_ns: int | None,
        limit: int,
    ) -> Sequence[ViewRow]:
        order = ("start_ns", "statement_id")
        return self._reader.page(view, order, after=after, before=before_ns, limit=limit, **_given(sla_id=sla_ids))

    def _newest(
        self,
        view: str,
        sla_ids: frozenset[str] | None,
        after: tuple[int, str] | None,
        before_ns: int | None,
        limit: int,
        **equal: int,
    ) -> Sequence[ViewRow]:
        """A page of a view about statements, of those that stand."""
        order, standing = ("start_ns", "statement_id"), frozenset({Standing.DRAFT, Standing.FINAL})
        wanted = {**_given(sla_id=sla_ids), "standing": standing, **equal}
        page = self._reader.page("view_standing", order, after=after, before=before_ns, limit=limit, **wanted)
        found = _by_statement(self._among(page)(view))
        return [found[row.columns["statement_id"]] for row in page]

    def _among(self, rows: Sequence[ViewRow]) -> _RowsOf:
        """Rows of other views about the statements of these rows."""
        names = {row.columns["statement_id"] for row in rows}
        return lambda view: self._reader.rows_among(view, "statement_id", names)

    def _statements(self, rows: Sequence[ViewRow], rows_of: _RowsOf) -> list[dict[str, Any]]:
        """Statements with what was proved, anchored and confirmed of them."""
        views = ("view_standing", "view_attestation", "view_anchor", "view_anchor_confirmation")
        standings, attested, *others = (_by_statement(rows_of(view)) for view in views)
        names = [row.columns["statement_id"] for row in rows]
        places = [leaf_place(row, attested.get(name)) for row, name in zip(rows, names, strict=True)]
        known = [place for place in places if place is not None]
        roots = self._reader.covering(min(known), max(known)) if known else ()
        return [
            statement_row(
                row,
                standings[name],
                attested.get(name),
                *(each.get(name) for each in others),
                roots=roots_at(roots, place),
            )
            for row, name, place in zip(rows, names, places, strict=True)
        ]

    def unbatched(self, start: int, end: int, limit: int) -> Sequence[Mapping[str, Any]]:
        proved = self._reader.logged("view_attestation", start, end, limit)
        issued = self._reader.logged("view_statement", start, end, limit)
        plain = [(tenant, row) for tenant, row in issued if not carries_proof(row.body)]
        found = [unbatched_row(tenant, row, proved=True) for tenant, row in proved]
        found += [unbatched_row(tenant, row, proved=False) for tenant, row in plain]
        return sorted(found, key=lambda row: int(row["seq"]))

    def _violations(self, rows: Sequence[ViewRow]) -> list[dict[str, Any]]:
        """Violations with the sum of their credit lines."""
        sums: dict[str, dict[str, Any]] = {}
        names = {row.columns["violation_id"] for row in rows}
        for line in self._reader.rows_among("view_credit_line", "violation_id", names):
            name, currency = line.columns["violation_id"], line.body["currency"]
            credit = sums.setdefault(name, {"currency": currency, "minor_units": 0})
            credit["minor_units"] += int(line.body["minor_units"])
        return [violation_row(row, sums.get(row.columns["violation_id"])) for row in rows]

    def _lines(self, rows: Sequence[ViewRow]) -> list[dict[str, Any]]:
        """Lines with what was proved and anchored of their statements."""
        rows_of = self._among(rows)
        attestations, anchors = (_by_statement(rows_of(view)) for view in ("view_attestation", "view_anchor"))
        found = ((row, row.columns["statement_id"]) for row in rows)
        return [credit_line_row(row, attestations.get(name), anchors.get(name)) for row, name in found]

    def evidence(self, service: str, start_ns: int, end_ns: int, limit: int) -> Sequence[Mapping[str, Any]]:
        """{event_id, service, kind, from_ns, to_ns, severity, ..., seq} of what was recorded about a service in
        [start_ns, end_ns), at most ``limit``, the most severe and then the newest first; one row of each series.

        Of a GPU or server: {subject, metric, min, max, last, samples}. Of a breaker (kind ``breaker_event``):
        {source, breaker, event, from_state, to_state, failure_rate}.
        """
        found = [
            row
            for view in ("view_telemetry", "view_breaker")
            for row in self._reader.telling(view, service, start_ns, end_ns, limit)
        ]
        return [evidence_row(row) for row in sorted(found, key=telling_order)[:limit]]

    def telemetry_source(self, service: str, source: str) -> Mapping[str, Any] | None:
        """{digest, format, media_type, scraped_at_ns} of the last batch a source recorded about a service."""
        rows = self._reader.rows("view_telemetry_source", service=service, source=source)
        return next((row.body for row in rows), None)


def telling_order(row: ViewRow) -> tuple[int, int, str, str]:
    """Sorts rows of evidence: the most severe first, then the newest, then by what never ties."""
    columns = row.columns
    return -columns["severity"], -columns["to_ns"], columns["series"], columns["event_id"]


def _by_statement(rows: Iterable[ViewRow]) -> Mapping[str, ViewRow]:
    return {row.columns["statement_id"]: row for row in rows}


def _given(**wanted: str | frozenset[str] | None) -> dict[str, str | frozenset[str]]:
    return {name: value for name, value in wanted.items() if value is not None}


def _filter(sla_id: str | None) -> dict[str, str]:
    return {} if sla_id is None else {"sla_id": sla_id}


def _only(rows: Iterable[ViewRow], what: str, name: str) -> ViewRow:
    for row in rows:
        return row
    raise NotFound(f"there is no {what} {name}", **{what: name})
