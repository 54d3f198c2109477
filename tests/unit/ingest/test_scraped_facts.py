"""What endpoints say, as rows of counter and histogram logs, and what leaves a round incomplete."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.app.facts.scraping import Mark, Round
from ledger.domain.rows.observation import RowRejection
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.errors import TargetUnavailable
from ledger.ingest.facts import read_facts
from ledger.ingest.prometheus import OPENMETRICS, TEXT
from ledger.ingest.scrape import Exposition
from ledger.ingest.scraped_facts import read_mark, read_round
from tests.unit.app.feeding import desk_of

TOTAL, ERRORS, LATENCY = "llm_request_total", "llm_request_errors_total", "llm_inference_duration_seconds"
AT = "2023-06-14T10:00:00Z"
OBJECTIVES: list[dict[str, Any]] = [
    {
        "id": "errors",
        "method": "total_ratio",
        "indicator": "error_rate",
        "target": "99",
        "source": "counters",
        "counters": {"total": TOTAL, "bad": ERRORS},
    },
    {
        "id": "response",
        "method": "exact_quantile",
        "indicator": "response_latency",
        "quantile": "0.95",
        "threshold_ms": "500",
        "target": "95",
        "source": "histograms",
        "histogram": LATENCY,
    },
]
TERMS = desk_of(OBJECTIVES).agreement
BUCKETS = "".join(f'{LATENCY}_bucket{{le="{le}"}} {count}\n' for le, count in (("0.5", 90), ("1.0", 99), ("+Inf", 100)))
WHOLE = f"""# TYPE {TOTAL} counter
{TOTAL}{{job="chat"}} 1e+06
# TYPE {ERRORS} counter
{ERRORS}{{job="chat",reason="oom"}} 7
# TYPE {LATENCY} histogram
{BUCKETS}{LATENCY}_sum 12.5
{LATENCY}_count 100
# TYPE other_total counter
other_total 3
"""


def answered(*texts: str | TargetUnavailable, media_type: str = TEXT) -> Round:
    answers = {
        f"pod-{number}:80": each if isinstance(each, TargetUnavailable) else Exposition(media_type, each.encode())
        for number, each in enumerate(texts)
    }
    return read_round(TERMS, parse_instant_ns(AT), answers)


def rows(found: Round, kind: str) -> list[dict[str, Any]]:
    read = list(read_facts(found.logs[kind]))
    assert not any(isinstance(row, RowRejection) for row in read)
    return [json.loads(line) for line in found.logs[kind].splitlines()]


def test_a_round_is_a_log_of_each_kind_that_names_its_targets() -> None:
    found = answered(WHOLE, WHOLE)
    mark = Mark(parse_instant_ns(AT), ("pod-0:80", "pod-1:80"), True)
    assert (found.mark, found.problems) == (mark, ())
    assert {kind: read_mark(log) for kind, log in found.logs.items()} == {"counters": mark, "histograms": mark}
    first, *others = rows(found, "counters")
    del first["round"]
    series = {"job": "chat", "reason": "oom", "instance": "pod-0:80"}
    assert first == {"counter": ERRORS, "series": series, "at": AT, "service": "example-chat", "value": "7"}
    assert [(each["counter"], each["series"]["instance"], each["value"]) for each in others] == [
        (TOTAL, "pod-0:80", "1000000.0"),
        (ERRORS, "pod-1:80", "7"),
        (TOTAL, "pod-1:80", "1000000.0"),
    ]
    histograms = rows(found, "histograms")
    assert [each["series"] for each in histograms] == [{"instance": "pod-0:80"}, {"instance": "pod-1:80"}]
    assert histograms[0]["buckets"] == {"0.5": 90, "1.0": 99, "+Inf": 100}


def test_openmetrics_says_when_a_series_began_and_an_own_instance_keeps_its_name() -> None:
    text = f"""# TYPE llm_request counter
{TOTAL}{{instance="gpu-3"}} 12 # {{trace_id="a"}} 1
llm_request_created{{instance="gpu-3"}} 1686736700.5
# TYPE llm_request_errors counter
# TYPE {LATENCY} histogram
{BUCKETS}{LATENCY}_count 100
{LATENCY}_sum 1
process_start_time_seconds 1686736600
# EOF
"""
    found = answered(text, media_type=OPENMETRICS)
    assert found.problems == ()
    (row,) = rows(found, "counters")
    assert row["series"] == {"exported_instance": "gpu-3", "instance": "pod-0:80"}
    # That of the process is no start of a series that does not say when it began.
    assert row["start"] == format_instant_ns(1_686_736_700_500_000_000)
    assert "start" not in rows(found, "histograms")[0]


def test_a_series_of_another_service_is_none_of_this_agreement() -> None:
    other = WHOLE.replace('{job="chat"}', '{service="other"}') + f'{TOTAL}{{service="example-chat"}} 5\n'
    assert [row["value"] for row in rows(answered(other), "counters") if row["counter"] == TOTAL] == ["5"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TargetUnavailable("the target pod-1 answered 503"), "pod-1:80: the target pod-1 answered 503"),
        (WHOLE.replace(ERRORS, "llm_failures_total"), f"{ERRORS} is not named: not measured, and not 0"),
        (WHOLE.replace(f"# TYPE {TOTAL} counter", f"# TYPE {TOTAL} gauge"), f"{TOTAL} is a gauge, and no counter"),
        (WHOLE.replace(f"# TYPE {LATENCY} histogram", f"# TYPE {LATENCY} summary"), "is a summary, and no histogram"),
        (WHOLE.replace('le="+Inf"', 'le="2"'), "not every bucket is there once"),
        (WHOLE.replace(" 99\n", " 99.5\n"), "does not count in whole numbers"),
        (WHOLE.replace("1e+06", "NaN"), f"{TOTAL} is nan"),
        (WHOLE.replace("1e+06", "1e+06 1686736740000"), "has a time of its own"),
        (WHOLE.replace("1e+06", "many"), "cannot be read"),
        (WHOLE[: WHOLE.index("e+06")], "it was cut off"),
        ("{}\n", "JSON or HTML"),
    ],
)
def test_what_one_target_leaves_unread_is_told_and_the_round_is_not_whole(
    text: str | TargetUnavailable, problem: str
) -> None:
    found = answered(WHOLE, text)
    assert not found.mark.whole
    assert any(problem in each and each.startswith("pod-1:80") for each in found.problems)
    # What the others say is recorded all the same.
    assert len([row for row in rows(found, "counters") if row["series"]["instance"] == "pod-0:80"]) == 2


def test_a_metric_without_a_sample_is_named_by_its_type_alone() -> None:
    silent = WHOLE.replace(f'{ERRORS}{{job="chat",reason="oom"}} 7\n', "")
    assert answered(silent).mark.whole
    assert not answered(silent.replace(f"# TYPE {ERRORS} counter\n", "")).mark.whole


def test_a_round_in_which_nothing_counts_yet_shows_nothing() -> None:
    found = answered(WHOLE.replace(BUCKETS, ""))
    assert (found.mark.whole, set(found.logs)) == (False, {"counters"})


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b'{"round":{"at":"x","targets":[],"whole":true}}', b"\xff", b"7"])
def test_a_log_of_no_round_has_no_mark(line: bytes) -> None:
    assert read_mark(line + b"\n") is None
