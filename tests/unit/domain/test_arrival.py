"""The same facts settle to the same bytes, in whatever order and batches they come."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.agreement import Agreement
from ledger.domain.canonical import canonical_bytes
from ledger.domain.evaluation import Evaluator
from ledger.domain.observation import RequestRow
from ledger.domain.restatement import differences
from ledger.domain.settlement import settle
from ledger.domain.window import period_named
from tests.unit.domain.samples import agreement

HOUR_NS = 3600 * 10**9
TERMS = agreement()
DAY = period_named(TERMS, "2023-06-14/P1D")


def request(name: int, hour: int, code: int | None, first_ms: int) -> RequestRow:
    said = f"{name} {hour} {code} {first_ms}".encode()
    return RequestRow(
        line=1,
        request_id=f"r{name}",
        body_digest=hashlib.blake2b(said, digest_size=16).digest(),
        service=TERMS.service,
        started_at_ns=DAY.interval.start_ns + hour * HOUR_NS,
        error_code=code,
        first_token_ns=None if code else first_ms * 10**6,
        response_ns=None if code else 1_500_000_000,
    )


requests = st.lists(
    st.builds(
        request,
        # Few names, so that rows repeat and contradict each other.
        st.integers(0, 7),
        st.integers(0, 23),
        st.sampled_from([None, 500]),
        st.sampled_from([200, 900]),
    ),
    max_size=12,
)


def digest(terms: Agreement, batches: Sequence[Sequence[RequestRow]]) -> str:
    evaluator = Evaluator(terms, DAY)
    for batch in batches:
        evaluator.add_all(batch)
    return hashlib.sha256(canonical_bytes(settle(terms, DAY, evaluator.windows()).as_document())).hexdigest()


@given(requests.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows), st.integers(0, len(rows)))))
def test_order_and_batches_do_not_matter(given_: tuple[list[RequestRow], list[RequestRow], int]) -> None:
    rows, permuted, at = given_
    assert digest(TERMS, [rows]) == digest(TERMS, [permuted[:at], permuted[at:]])


@given(requests)
def test_the_same_facts_twice_are_no_difference(rows: list[RequestRow]) -> None:
    assert digest(TERMS, [rows]) == digest(TERMS, [rows, rows])


Amount: TypeAlias = dict[str, str] | None

amounts = st.none() | st.integers(0, 10**9).map(lambda units: {"currency": "USD", "minor_units": str(units)})


@given(amounts, amounts)
def test_a_difference_leads_from_the_old_credit_to_the_new(
    old: dict[str, str] | None, new: dict[str, str] | None
) -> None:
    found = differences({"objectives": [], "credit": old}, {"objectives": [], "credit": new}, "USD")["credit_delta"]
    before, after = (0 if found[name] is None else int(found[name]) for name in ("old", "new"))
    assert before + int(found["difference"]) == after
    assert (found["old"] is None, found["new"] is None) == (old is None, new is None)
