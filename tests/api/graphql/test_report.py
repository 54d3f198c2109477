"""``slaReport`` over recorded rows and judged windows."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.graphql.report import error_rate_percent, milliseconds
from api.rest.values import attainment_percent
from ledger.app.agreements.registering import RegisteredAgreement, registered_agreement
from ledger.app.facts.observations import record_observations
from ledger.app.judgement.windows import evaluate_windows
from ledger.attest.proving.attestor import CircuitAttestor
from ledger.attest.proving.circuits import load_circuits
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import format_instant_ns
from ledger.ingest.request_log import RequestLog
from ledger.resources import resource_dir
from tests.api.graphql.conftest import FINANCE, NOW_NS, VIEWER, Asker, asker_over, codes, fill, holding

DAY = "2023-12-19/P1D"
ALL = "from to uptimePercent errorRatePercent requests windows p95LatencyMs measuredRequests"
WHOLE_DAY = '{from: "2023-12-19T01:00:00+01:00", to: "2023-12-20T00:00:00.000000000Z"}'


def report(ask: Asker, window: str, fields: str = ALL, *, customer: str = "default", **options: Any) -> Any:
    return ask(fill('{ slaReport(customerId: "%s", timeWindow: %s) { %s } }', customer, window, fields), **options)


@pytest.fixture
def measured(ledger: Any) -> Any:
    """A day of 20,000 requests: one failed, and the slowest twentieth took 2.0000005 s, one 9 s."""
    sla_id = ledger.agreement(1)
    with ledger.database.begin() as tx:
        row = tx.views.agreement(sla_id)
        attestor = CircuitAttestor(load_circuits(resource_dir("circuits")), {})
        payload = {**row, "registration": None}
        registered: RegisteredAgreement = registered_agreement(payload, attestor)
        period = period_named(registered.agreement, DAY)
        record_observations(
            tx,
            registered,
            requests(period.interval.start_ns),
            read_rows=read_rows,
            declared_complete=period.interval,
            now_ns=period.interval.end_ns,
        )
        evaluate_windows(tx, registered, period, read_rows=read_rows)
    return ledger


def read_rows(data: bytes) -> Any:
    return RequestLog(io.BytesIO(data), "batch")


def requests(start_ns: int, count: int = 20_000) -> bytes:
    rows = []
    for n in range(count):
        failed, slow = n == 5, "9" if n == 0 else "2.0000005" if n % 20 == 1 else "0.7815"
        first_token, e2e, code = ("0", "0", "500") if failed else ("0.2", slow, "null")
        rows.append(
            f'{{"request_id":"r{n}","started_at":"{format_instant_ns(start_ns + n * 4 * 10**9)}",'
            f'"service":"example-chat","ttft_s":{first_token},"e2e_s":{e2e},"error_code":{code}}}'
        )
    return "\n".join(rows).encode() + b"\n"


@pytest.mark.slow
def test_the_figures_of_a_day(ask: Asker, measured: Any) -> None:
    assert report(ask, WHOLE_DAY) == {
        "data": {
            "slaReport": {
                "from": "2023-12-19T00:00:00Z",
                "to": "2023-12-20T00:00:00Z",
                "uptimePercent": "99.9950",
                "errorRatePercent": "0.0050",
                "requests": 20_000,
                "windows": 24,
                # 1,000 of 19,999 are slower than 781.5 ms and 1,001 with the slowest: rank 19,000 of 19,999.
                "p95LatencyMs": "2000.0005",
                "measuredRequests": 19_999,
            }
        }
    }


@pytest.mark.slow
def test_a_named_range_ends_with_the_last_whole_minute(measured: Any) -> None:
    for ask in asker_over(measured):
        # The fixture's present is days later, where nothing was measured.
        found = report(ask, "{range: LAST_24_HOURS}")["data"]["slaReport"]
        assert found["to"] == format_instant_ns(NOW_NS)
        assert (found["uptimePercent"], found["p95LatencyMs"], found["measuredRequests"]) == (None, None, 0)
        found = report(ask, "{range: LAST_30_DAYS}")["data"]["slaReport"]
        assert (found["uptimePercent"], found["requests"]) == ("99.9950", 20_000)


def test_where_nothing_was_measured_there_is_no_figure(ask: Asker, ledger: Any) -> None:
    ledger.agreement(1)
    found = report(ask, WHOLE_DAY)["data"]["slaReport"]
    assert [found[name] for name in ("uptimePercent", "errorRatePercent", "p95LatencyMs")] == [None] * 3
    assert [found[name] for name in ("requests", "windows", "measuredRequests")] == [0] * 3


def test_another_customer_is_no_customer_whether_there_is_one_or_not(ask: Asker, ledger: Any) -> None:
    for name in ("other", "nobody"):
        stranger = holding(tenant="other")
        assert "errors" not in report(ask, WHOLE_DAY, "from", customer="other", by=stranger)
        answer = report(ask, WHOLE_DAY, customer=name)
        assert answer["data"] == {"slaReport": None}
        assert codes(answer) == ["NOT_FOUND"]
    shown = [json.dumps(report(ask, WHOLE_DAY, customer=name)).replace(name, "") for name in ("other", "nobody")]
    assert shown[0] == shown[1]


def test_who_may_see_which_figures(ask: Asker, ledger: Any) -> None:
    assert "errors" not in report(ask, WHOLE_DAY, by=VIEWER)
    answer = report(ask, WHOLE_DAY, by=FINANCE)
    assert {error["extensions"]["scope"] for error in answer["errors"]} == {"sla:read:uptime", "sla:read:latency"}
    assert set(answer["data"]["slaReport"].values()) == {None, "2023-12-19T00:00:00Z", "2023-12-20T00:00:00Z"}


@pytest.mark.parametrize(
    ("window", "code"),
    [
        ("{}", "QUERY_INVALID"),
        ('{from: "2023-12-19T00:00:00Z"}', "QUERY_INVALID"),
        ('{from: "2023-12-19T00:00:00Z", to: "2023-12-20T00:00:00Z", range: LAST_HOUR}', "QUERY_INVALID"),
        ('{from: "2023-12-20T00:00:00Z", to: "2023-12-19T00:00:00Z"}', "INTERVAL_INVALID"),
        ('{from: "2023-12-20T00:00:00Z", to: "2023-12-20T00:00:00Z"}', "INTERVAL_INVALID"),
        ('{from: "2023-12-19T00:00:00", to: "2023-12-20T00:00:00Z"}', "GRAPHQL_VALIDATION_FAILED"),
        ('{from: "2023-12-19T00:00:00.0000000001Z", to: "2023-12-20T00:00:00Z"}', "GRAPHQL_VALIDATION_FAILED"),
        ("{from: 1, to: 2}", "GRAPHQL_VALIDATION_FAILED"),
        ("{range: LAST_YEAR}", "GRAPHQL_VALIDATION_FAILED"),
        ('{from: "1971-01-01T00:00:00Z", to: "2200-01-01T00:00:00Z"}', "QUERY_INVALID"),
    ],
)
def test_a_time_window_that_is_none_is_named(ask: Asker, ledger: Any, window: str, code: str) -> None:
    ledger.agreement(1)
    assert set(codes(report(ask, window, "uptimePercent"))) == {code}


def test_a_time_without_a_zone_says_so(ask: Asker) -> None:
    query = 'query ($w: TimeWindow!) { slaReport(customerId: "default", timeWindow: $w) { from } }'
    answer = ask(query, variables={"w": {"from": "2023-12-19T00:00:00", "to": "2023-12-20T00:00:00Z"}})
    assert codes(answer) == ["GRAPHQL_VALIDATION_FAILED"]
    assert "no zone" in answer["errors"][0]["message"]


def test_nanoseconds_are_kept(ask: Asker) -> None:
    window = '{from: "2023-12-19T00:00:00.000000001Z", to: "2023-12-19T00:00:00.000000002Z"}'
    found = report(ask, window, "from to")["data"]["slaReport"]
    assert found == {"from": "2023-12-19T00:00:00.000000001Z", "to": "2023-12-19T00:00:00.000000002Z"}


@given(st.integers(0, 10**9).flatmap(lambda valid: st.tuples(st.integers(0, valid), st.just(valid))))
def test_uptime_and_error_rate_add_up_and_hide_no_failure(counts: tuple[int, int]) -> None:
    good, valid = counts
    up, errors = attainment_percent(good, valid), error_rate_percent(good, valid)
    if valid == 0:
        assert (up, errors) == (None, None)
        return
    assert up is not None
    assert errors is not None
    assert int(up.replace(".", "")) + int(errors.replace(".", "")) == 100 * 10**4
    assert (up == "100.0000") == (errors == "0.0000") == (good == valid)


@pytest.mark.parametrize(
    ("latency_ns", "text"), [(0, "0"), (1, "0.000001"), (781_500_000, "781.5"), (800 * 10**6, "800"), (10**7, "10")]
)
def test_milliseconds_are_exact(latency_ns: int, text: str) -> None:
    assert milliseconds(latency_ns) == text
