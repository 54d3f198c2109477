"""What OpenSLO and Sloth documents become, trap by trap, in documents written for these tests."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ledger.domain.credits.settlement import settle
from ledger.domain.credits.verdict import ObjectiveResult, ObjectiveState
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.facts.samples import SampleBook
from ledger.domain.money import PARTS_PER_BILLION
from ledger.domain.rows.observation import SampleRow
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import parse_instant_ns
from ledger.errors import DocumentInvalid, NoCounterpart, ReferenceUnresolved
from ledger.ingest.agreement_yaml import MAX_BYTES, load_agreement
from ledger.ingest.facts import read_facts
from ledger.ingest.slo_draft import Draft, make_drafts
from ledger.ingest.slo_model import NoteKind
from tests.unit.domain.samples import EXAMPLES
from tests.unit.ingest.slo_cases import drafts_of, first_period, only_draft, read, settled

RATIO = """
    ratioMetric:
      good: {metricSource: {type: Prometheus, spec: {query: good_total}}}
      total: {metricSource: {type: Prometheus, spec: {query: all_total}}}"""
INLINE = "indicator:\n    metadata: {name: answers}\n    spec:" + RATIO.replace("\n", "\n  ")
WEEK = "timeWindow: [{duration: 1w, calendar: {startTime: 2026-01-05 00:00:00, timeZone: Europe/Berlin}}]"


def slo(objective: str = "target: 0.995", *, method: str = "Occurrences", window: str = WEEK, more: str = "") -> str:
    return f"""
apiVersion: openslo/v1
kind: SLO
metadata: {{name: chat-up}}
spec:
  service: chat
  budgetingMethod: {method}
  {window}
  objectives: [{{{objective}}}]
  {more or INLINE}
"""


def objective_of(draft: Draft) -> dict[str, Any]:
    (found,) = draft.document["objectives"]
    return dict(found)


def refused(kind: type[DocumentInvalid], *texts: str) -> DocumentInvalid:
    with pytest.raises(kind) as caught:
        make_drafts(read(*texts).slos)
    assert type(caught.value) is kind
    assert caught.value.exit_code == 2
    return caught.value


# --- budgeting methods: the published comparison of the three ---


def budgeting(case: dict[str, Any], method: str) -> tuple[ObjectiveResult, Agreement]:
    """The case's ten slices, each a minute; imported over a day, whose other minutes are idle."""
    said = f"target: {case['input']['target']}"
    if method != "Occurrences":
        said += ", timeSliceWindow: 1m"
    if method == "Timeslices":
        said += f", timeSliceTarget: {case['input']['time_slice_target']}"
    draft = only_draft(slo(said, method=method, window="timeWindow: [{duration: 1d, isRolling: true}]"))
    document = {**draft.document, "window": "PT1M"}
    agreement = Agreement.from_document(document)
    counts = [(good, valid - good) for good, valid in zip(case["input"]["good"], case["input"]["valid"], strict=True)]
    (result,) = settled(agreement, counts).objectives
    return result, agreement


@pytest.fixture(scope="module")
def case_08(sla_fixtures: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (sla_fixtures / "sla/cases/case_open_08_openslo_budgeting_methods.json").read_text()
    )
    return found


def test_occurrences_weigh_by_traffic(case_08: dict[str, Any]) -> None:
    expected = case_08["expected"]["Occurrences"]
    result, _ = budgeting(case_08, "Occurrences")
    assert Fraction(result.good, result.valid) == Fraction(expected["ratio_fraction"])
    budget = 1 - Fraction(result.objective.target_ppb, PARTS_PER_BILLION)
    burnt = Fraction(result.valid - result.good, result.valid) / budget
    assert burnt * 100 == Fraction(expected["budget_burnt_percent_fraction"])


def test_timeslices_are_good_or_bad(case_08: dict[str, Any]) -> None:
    expected = case_08["expected"]["Timeslices"]
    result, _ = budgeting(case_08, "Timeslices")
    assert Fraction(result.good, result.valid) == Fraction(expected["good_slices"], expected["slices"])


def test_ratio_timeslices_are_a_mean(case_08: dict[str, Any]) -> None:
    """The method counts billionths of a slice and rounds the loss up, which decides every threshold exactly."""
    result, _ = budgeting(case_08, "RatioTimeslices")
    exact = Fraction(case_08["expected"]["RatioTimeslices"]["ratio_fraction"])
    assert 0 <= exact - Fraction(result.good, result.valid) < Fraction(1, result.valid)


@pytest.mark.long
@pytest.mark.parametrize("method", ["Timeslices", "RatioTimeslices"])
def test_an_attack_burns_the_budget_after_as_many_slices_as_published(case_08: dict[str, Any], method: str) -> None:
    attack = case_08["input"]["attack"]
    burns = {
        "Timeslices": Fraction(case_08["expected"]["attack"]["Timeslices_slices_to_burn"]),
        "RatioTimeslices": Fraction(case_08["expected"]["attack"]["RatioTimeslices_slices_to_burn_fraction"]),
    }[method]
    said = f"target: {attack['target']}, timeSliceWindow: 1m"
    if method == "Timeslices":
        said += f", timeSliceTarget: {attack['target']}"
    window = "timeWindow: [{duration: 2w, isRolling: true}]"
    agreement = Agreement.from_document(only_draft(slo(said, method=method, window=window)).document)
    good, under = (Fraction(attack[key]) * 100 for key in ("normal_ratio", "attack_ratio"))
    slices = attack["window_slices"]
    for attacked in (int(burns), int(burns) + 1):
        counts = [(int(under), 100 - int(under))] * attacked + [(int(good), 100 - int(good))] * (slices - attacked)
        (result,) = settled(agreement, counts).objectives
        if method == "Timeslices":
            assert result.valid == slices
        assert (result.state is ObjectiveState.MET) == (attacked <= burns)


# --- the traps of real documents ---


def test_m_is_minutes_and_capital_m_months() -> None:
    error = refused(NoCounterpart, slo(window=WEEK.replace("1w", "1m")))
    assert error.data["field"] == "spec.timeWindow[0].duration"
    assert "write 1M for months" in error.message
    assert only_draft(slo(window=WEEK.replace("1w", "1M"))).document["period"] == "P1M"


@pytest.mark.parametrize(
    ("duration", "period"),
    [("1d", "P1D"), ("24h", "P1D"), ("28d", "P28D"), ("2w", "P2W"), ("1Q", "P3M"), ("1Y", "P12M")],
)
def test_durations_become_periods(duration: str, period: str) -> None:
    draft = only_draft(slo(window=f"timeWindow: [{{duration: {duration}, isRolling: true}}]"))
    assert draft.document["period"] == period


@pytest.mark.parametrize(
    "window",
    [
        WEEK.replace("2026-01-05 00:00:00", "2026-01-05T00:00:00Z"),
        WEEK.replace("2026-01-05 00:00:00", "2026-13-05 00:00:00"),
        WEEK.replace("2026-01-05 00:00:00", "2026-01-05 24:00:00"),
        WEEK.replace("Europe/Berlin", "CEST"),
        WEEK.replace("duration: 1w", "duration: 1w, isRolling: true"),
        WEEK.replace("1w", "1W"),
        WEEK.replace("1w", "0w"),
        WEEK.replace("1w", "w"),
        "timeWindow: []",
        "timeWindow: [{duration: 1w, isRolling: true}, {duration: 4w, isRolling: true}]",
        "timeWindow: [{duration: 1w, isRolling: false}]",
        "timeWindow: [{duration: 1w, isRolling: maybe}]",
    ],
)
def test_windows_that_contradict_themselves_are_refused(window: str) -> None:
    error = refused(DocumentInvalid, slo(window=window))
    assert error.data["field"].startswith("spec.timeWindow")
    assert error.data["line"] == 8


def test_a_calendar_window_keeps_its_zone_and_date() -> None:
    document = only_draft(slo()).document
    assert document["timezone"] == "Europe/Berlin"
    assert document["effective"]["from"] == "2026-01-05"


def test_a_window_starts_by_the_wall_clock_of_its_zone(sla_fixtures: Path) -> None:
    """08:00 in New York is 12:00Z in summer; a fixed offset would say 13:00Z."""
    case = json.loads((sla_fixtures / "sla/cases/case_open_07_calendar_month_dst.json").read_text())
    said, expected = case["input"]["openslo_window"], case["expected"]["openslo_window"]
    calendar = f'{{startTime: "{said["startTime"]}", timeZone: {said["timeZone"]}}}'
    window = f"timeWindow: [{{duration: {said['duration']}, calendar: {calendar}}}]"
    agreement = Agreement.from_document(only_draft(slo(window=window)).document)
    period = agreement.periods.at(parse_instant_ns(said["now"]))
    assert period is not None
    bounds = [parse_instant_ns(expected[key]) for key in ("start", "end")]
    assert [period.interval.start_ns, period.interval.end_ns] == bounds
    assert settled(agreement, [(1, 0)]).objectives[0].state is ObjectiveState.MET


def test_a_window_that_starts_on_the_31st_ends_with_each_month() -> None:
    draft = only_draft(slo(window=WEEK.replace("1w", "1M").replace("01-05", "01-31")))
    starts = [str(period.first) for period in Agreement.from_document(draft.document).periods.all()]
    assert starts[:3] == ["2026-01-31", "2026-02-28", "2026-03-31"]


def test_a_rolling_window_rolls_unless_it_pays() -> None:
    text = slo(window="timeWindow: [{duration: 28d, isRolling: true}]")
    rolling = Agreement.from_document(only_draft(text).document)
    assert [str(period.first) for period in rolling.periods.all()][:2] == ["2026-01-01", "2026-01-02"]
    template = dict(load_agreement(EXAMPLES / "agreement.yaml").document)
    (rule,) = template["compensation"]["rules"]
    tiers = {"chat-up": [{"below": "99.5", "credit_percent": "10"}]}
    template["compensation"] = {**template["compensation"], "rules": [{**rule, "tiers": tiers}]}
    (draft,) = make_drafts(read(text).slos, template)
    assert "step" not in draft.document
    assert draft.document["period"] == "P28D"


def test_a_missing_window_is_assumed_and_said() -> None:
    draft = only_draft(slo(window="description: none"))
    assert draft.document["period"] == "P1M"
    assert [note.value for note in draft.notes if note.kind is NoteKind.ASSUMED] == ["P1M"]


@pytest.mark.parametrize(
    ("said", "target"),
    [
        ("target: 0.9995", "99.95"),
        ("target: 0.999999999", "99.9999999"),
        ("target: 0.30", "30"),
        ("target: 9.5e-1", "95"),
        ("targetPercent: 99.99", "99.99"),
        ("targetPercent: 99", "99"),
    ],
)
def test_targets_are_exact_decimals(said: str, target: str) -> None:
    """0.9995 * 100 is 99.95000000000002 in floats."""
    assert objective_of(only_draft(slo(said)))["target"] == target


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("target: 1.0", "target"),
        ("targetPercent: 100", "targetPercent"),
        ("target: -0.1", "target"),
        ("target: .nan", "target"),
        ("target: 99%", "target"),
        ("target: 0.9, targetPercent: 90", "targetPercent"),
        ("displayName: none", "target"),
    ],
)
def test_targets_outside_their_range_are_refused(said: str, field: str) -> None:
    assert refused(DocumentInvalid, slo(said)).data["field"] == f"spec.objectives[0].{field}"


def test_a_window_that_starts_within_a_minute() -> None:
    error = refused(NoCounterpart, slo(window=WEEK.replace("00:00:00", "12:00:30")))
    assert error.data["field"] == "spec.timeWindow[0].calendar.startTime"


@pytest.mark.parametrize("said", ["target: 0", "target: 0.9999999999"])
def test_targets_that_no_agreement_can_name(said: str) -> None:
    assert refused(NoCounterpart, slo(said)).data["field"] == "spec.objectives[0].target"


def test_labels_are_a_text_or_a_list_and_are_reported() -> None:
    text = slo().replace("{name: chat-up}", "{name: chat-up, labels: {team: a, env: [prod, dev]}, displayName: Chat}")
    notes = {note.place.field: note.value for note in only_draft(text).notes if note.kind is NoteKind.NO_COUNTERPART}
    assert notes["metadata.labels.team"] == "a"
    assert notes["metadata.labels.env"] == "prod, dev"
    assert notes["metadata.displayName"] == "Chat"


def test_whatever_is_not_used_is_reported() -> None:
    """Each text of the document is a term of the draft, shown in a note, or the name of its own kind and place."""
    text = slo("target: 0.9, displayName: Fine, op: gt", more=INLINE).replace(
        "service: chat", "service: chat\n  description: why"
    )
    draft = only_draft(text)
    said = json.dumps(draft.document) + json.dumps([note.as_document() for note in draft.notes])
    for value in ("Fine", "why", "gt", "Prometheus", "good_total", "all_total", "chat-up"):
        assert value in said


# --- indicators ---


def with_indicator(metric: str, objective: str = "target: 0.9") -> str:
    return slo(objective, more=f"indicator: {{metadata: {{name: answers}}, spec: {{{metric}}}}}")


def metric(kind: str, query: str = "q") -> str:
    return f"{kind}: {{metricSource: {{spec: {{query: '{query}'}}}}}}"


def test_good_of_total_counts_requests_and_asks_for_agreement() -> None:
    draft = only_draft(slo())
    assert objective_of(draft)["indicator"] == "availability"
    (confirm,) = [note for note in draft.notes if note.kind is NoteKind.CONFIRM]
    assert confirm.value == "good: good_total; total: all_total"


@pytest.mark.parametrize(
    ("bucket", "indicator", "threshold"),
    [
        ('llm_ttft_seconds_bucket{le="0.8"}', "first_token_latency", "800"),
        ('http_request_duration_seconds_bucket{le="0.4",verb!="WATCH"}', "response_latency", "400"),
        ('answer_time_ms_bucket{le = "3200.0"}', "response_latency", "3200"),
    ],
)
def test_a_histogram_bucket_is_a_latency(bucket: str, indicator: str, threshold: str) -> None:
    total = metric("total")
    found = objective_of(only_draft(with_indicator(f"ratioMetric: {{{metric('good', bucket)}, {total}}}")))
    assert (found["indicator"], found["threshold_ms"]) == (indicator, threshold)


def test_two_buckets_say_no_single_bound() -> None:
    query = 'a_duration_seconds_bucket{le="1"} - a_duration_seconds_bucket{le="0.5"}'
    found = objective_of(only_draft(with_indicator(f"ratioMetric: {{{metric('good', query)}, {metric('total')}}}")))
    assert found["indicator"] == "availability"


@pytest.mark.parametrize(
    ("op", "value", "measure"),
    [
        ("lte", "500", {"at_most": "500"}),
        ("lt", "500", {"at_most": "499.999999999"}),
        ("gte", "0.5", {"at_least": "0.5"}),
        ("gt", "200.0", {"at_least": "200.000000001"}),
    ],
)
def test_a_threshold_is_a_measure_of_samples(op: str, value: str, measure: dict[str, str]) -> None:
    text = with_indicator(metric("thresholdMetric"), f"target: 0.9, op: {op}, value: {value}")
    found = objective_of(only_draft(text))
    assert found["indicator"] == "metric_value"
    assert found["measure"] == measure
    assert found["evaluator"] == "answers"


def test_a_threshold_settles_a_sample_log() -> None:
    """Values under 500 are good: 499.9 is, 500 is not; a sample by another indicator counts nowhere."""
    objective = "target: 0.7, op: lt, value: 500"
    agreement = Agreement.from_document(only_draft(with_indicator(metric("thresholdMetric"), objective)).document)
    period = first_period(agreement)
    said = [("answers", "0"), ("answers", "499.9"), ("answers", "500"), ("others", "9000")]
    rows = [
        {"sample_id": f"s-{at}", "at": "2026-01-05T10:00:00Z", "service": "chat", "indicator": "metric_value"}
        | {"evaluator": evaluator, "value": value}
        for at, (evaluator, value) in enumerate(said)
    ]
    book = SampleBook(agreement, period)
    for row in read_facts("".join(json.dumps(row) + "\n" for row in rows).encode()):
        assert isinstance(row, SampleRow)
        book.add(row)
    settlement = settle(agreement, period, book.windows(Evaluator(agreement, period).windows()))
    (result,) = settlement.objectives
    assert (result.good, result.valid, result.state) == (2, 3, ObjectiveState.BREACHED)


def test_a_threshold_needs_its_operator_and_value() -> None:
    error = refused(DocumentInvalid, with_indicator(metric("thresholdMetric"), "target: 0.9, op: lt"))
    assert error.data["field"] == "spec.objectives[0].value"


@pytest.mark.parametrize("said", ["op: lt, value: 0", "op: gte, value: -1", "op: lte, value: 0.0000000001"])
def test_bounds_that_no_agreement_can_name(said: str) -> None:
    error = refused(NoCounterpart, with_indicator(metric("thresholdMetric"), f"target: 0.9, {said}"))
    assert error.data["field"] == "spec.objectives[0].value"


@pytest.mark.parametrize("kind", ["success", "failure"])
def test_a_ready_made_ratio_is_a_score(kind: str) -> None:
    draft = only_draft(with_indicator(f"ratioMetric: {{rawType: {kind}, {metric('raw')}}}"))
    assert objective_of(draft)["measure"] == {"score_of": "1"}
    (confirm,) = [note for note in draft.notes if note.kind is NoteKind.CONFIRM]
    assert ("send 1 minus its value" in confirm.message) == (kind == "failure")


@pytest.mark.parametrize(
    ("ratio", "field"),
    [
        ("", "total"),
        (metric("good"), "total"),
        (metric("total"), "good"),
        (f"{metric('good')}, {metric('bad')}, {metric('total')}", "bad"),
        (metric("raw"), "rawType"),
        (f"{metric('raw')}, {metric('total')}, {metric('good')}", "raw"),
        (f"rawType: success, {metric('raw')}, {metric('bad')}", "bad"),
    ],
)
def test_ratios_that_say_too_little_or_too_much(ratio: str, field: str) -> None:
    error = refused(DocumentInvalid, with_indicator(f"ratioMetric: {{{ratio}}}"))
    assert error.data["field"] == f"spec.indicator.spec.ratioMetric.{field}"


# --- references ---

SLI = f"""
apiVersion: openslo/v1
kind: SLI
metadata: {{name: answers}}
spec:{RATIO.replace(chr(10) + "    ", chr(10) + "  ")}
"""


def test_an_indicator_is_found_in_another_file_or_document() -> None:
    text = slo(more="indicatorRef: answers")
    inline = objective_of(only_draft(slo()))
    assert objective_of(only_draft(text, SLI)) == inline
    assert objective_of(only_draft(f"{SLI}---{text}")) == inline


def test_a_reference_that_leads_nowhere_is_refused() -> None:
    error = refused(ReferenceUnresolved, slo(more="indicatorRef: answers"))
    assert error.code == "reference_unresolved"
    assert error.data["field"] == "spec.indicatorRef"
    assert error.data["line"] == 10


def test_a_reference_to_two_things_is_refused() -> None:
    other = SLI.replace("good_total", "other_total")
    assert refused(ReferenceUnresolved, slo(more="indicatorRef: answers"), SLI, other).data["file"] == "a.yaml"
    assert len(read(slo(more="indicatorRef: answers"), SLI, SLI).slos) == 1


def test_alerts_that_are_not_there_are_refused_or_kept() -> None:
    text = slo(more=f"alertPolicies: [{{alertPolicyRef: page}}]\n  {INLINE}")
    assert refused(ReferenceUnresolved, text).data["field"] == "spec.alertPolicies[0].alertPolicyRef"
    imported = read(text, keep_references=True)
    assert [note.value for note in imported.notes] == ["page"]


def test_each_objective_may_have_its_own_indicator() -> None:
    objectives = "target: 0.9, indicatorRef: answers, compositeWeight: 2}, {target: 0.8, indicatorRef: answers"
    draft = only_draft(slo(objectives, more="description: two"), SLI)
    assert [each["id"] for each in draft.document["objectives"]] == ["chat-up-1", "chat-up-2"]
    assert any(note.place.field == "spec.objectives[0].compositeWeight" for note in draft.notes)
    error = refused(DocumentInvalid, slo(objectives), SLI)
    assert error.data["field"] == "spec.objectives[0].indicatorRef"


# --- versions ---

V1ALPHA = """
apiVersion: openslo/v1alpha
kind: SLO
metadata: {name: ratio}
spec:
  service: chat
  budgetingMethod: Timeslices
  timeWindows: [{unit: Week, count: 4, isRolling: true}]
  objectives:
    - target: 0.98
      timeSliceTarget: 0.9
      ratioMetrics:
        incremental: true
        good: {source: prometheus, queryType: promql, query: good}
        total: {source: prometheus, queryType: promql, query: all}
"""
V2ALPHA = """
apiVersion: openslo.com/v2alpha
kind: SLO
metadata: {name: ratio}
spec:
  serviceRef: chat
  budgetingMethod: RatioTimeslices
  timeWindow: [{duration: 30d, isRolling: true}]
  sli:
    metadata: {name: answers}
    spec:
      ratioMetric:
        good: {dataSourceRef: main, spec: {query: good}}
        total: {dataSourceRef: main, spec: {query: all}}
  objectives: [{target: 0.98, timeSliceWindow: 5m}]
"""


def test_v1alpha_slices_are_a_minute_and_that_is_said() -> None:
    draft = only_draft(V1ALPHA)
    assert draft.document["period"] == "P4W"
    assert objective_of(draft)["slice"] == {"window": "PT1M", "target": "90"}
    assert "1m" in [note.value for note in draft.notes if note.kind is NoteKind.ASSUMED]


def test_v2alpha_names_its_parts_otherwise() -> None:
    found = objective_of(only_draft(V2ALPHA))
    assert (found["method"], found["interval"]) == ("interval_mean-v1", "PT5M")
    same = V2ALPHA.replace("serviceRef", "service")
    assert objective_of(only_draft(same)) == found
    both = V2ALPHA.replace("serviceRef: chat", "serviceRef: chat\n  service: chat")
    assert refused(DocumentInvalid, both).data["field"] == "spec.serviceRef"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (V1ALPHA.replace("count: 4", "count: 1.5"), "spec.timeWindows[0].count"),
        (V1ALPHA.replace("ratioMetrics", "ratioMetric"), "spec.objectives[0].ratioMetric"),
        (V1ALPHA.replace("Timeslices", "RatioTimeslices"), "spec.budgetingMethod"),
        (V1ALPHA.replace("openslo/v1alpha", "openslo/v1"), "spec.timeWindows"),
        (V2ALPHA.replace("openslo.com/v2alpha", "openslo/v2alpha"), "apiVersion"),
        (V2ALPHA.replace("dataSourceRef: main, ", "", 1), "spec.sli.spec.ratioMetric.good.dataSourceRef"),
        (V2ALPHA.replace("{name: ratio}", "{name: Ratio}"), "metadata.name"),
        (V2ALPHA.replace("kind: SLO", "kind: Slo"), "kind"),
    ],
)
def test_each_version_has_its_own_closed_shape(text: str, field: str) -> None:
    assert refused(DocumentInvalid, text).data["field"] == field


def test_slos_of_another_service_or_window_get_a_draft_of_their_own() -> None:
    other = slo().replace("service: chat", "service: search")
    longer = slo(window=WEEK.replace("1w", "2w"))
    names = [(draft.document["service"]["name"], draft.document["period"]) for draft in drafts_of(slo(), other, longer)]
    assert names == [("chat", "P1W"), ("search", "P1W"), ("chat", "P2W")]
    assert len(only_draft(slo(), slo()).document["objectives"]) == 2


def test_more_objectives_than_an_agreement_holds() -> None:
    refused(NoCounterpart, "---".join([slo()] * 17))


# --- Sloth ---

SLOTH = """
version: prometheus/v1
service: chat
labels: {owner: team-a}
slos:
  - name: answered
    objective: 99.9
    description: Nine hundred and ninety-nine answers of a thousand.
    sli:
      events:
        error_query: sum(rate(llm_request_errors_total[{{.window}}]))
        total_query: sum(rate(llm_request_total[{{.window}}]))
    alerting:
      name: ChatAnswers
      page_alert: {labels: {severity: critical}}
      ticket_alert: {disable: true}
  - name: quick
    objective: 99
    sli:
      events:
        error_query: |
          sum(rate(llm_inference_duration_seconds_count[{{.window}}]))
          - sum(rate(llm_inference_duration_seconds_bucket{le="3.2"}[{{.window}}]))
        total_query: sum(rate(llm_inference_duration_seconds_count[{{ .window }}]))
    alerting: {page_alert: {disable: true}, ticket_alert: {disable: true}}
  - name: ready-made
    objective: 100
    sli: {raw: {error_ratio_query: 'chat:errors:ratio{window="{{.window}}"}'}}
"""


TOTAL = "total_query: sum(rate(llm_request_total[{{.window}}]))"


def test_a_sloth_spec_is_judged_over_thirty_days() -> None:
    draft = only_draft(SLOTH)
    assert draft.document["period"] == "P30D"
    up, quick, ready = draft.document["objectives"]
    assert (up["indicator"], up["target"]) == ("availability", "99.9")
    assert (quick["indicator"], quick["threshold_ms"], quick["target"]) == ("response_latency", "3200", "99")
    assert (ready["measure"], ready["target"]) == ({"score_of": "1"}, "100")
    reported = {note.place.field for note in draft.notes if note.kind is NoteKind.NO_COUNTERPART}
    assert {"labels.owner", "slos[0].description", "slos[0].alerting.name"} <= reported


def test_a_sloth_spec_settles() -> None:
    agreement = Agreement.from_document(only_draft(SLOTH).document)
    states = [str(result.state) for result in settled(agreement, [(998, 2)]).objectives]
    assert states == ["breached", "met", "breached"]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("objective: 99.9", "objective: 0", "slos[0].objective"),
        ("objective: 99.9", "objective: 100.1", "slos[0].objective"),
        (
            "total_query: sum(rate(llm_request_total[{{.window}}]))",
            "total_query: all[5m]",
            "slos[0].sli.events.total_query",
        ),
        ("total_query: sum(rate(llm_request_total[{{.window}}]))", "colour: red", "slos[0].sli.events.colour"),
        ("prometheus/v1", "prometheus/v9", "version"),
        ("sli: {raw: {", "sli: {events: {error_query: a, total_query: b}, raw: {", "slos[2].sli.raw"),
    ],
)
def test_sloth_specs_that_are_not_valid(old: str, new: str, field: str) -> None:
    assert refused(DocumentInvalid, SLOTH.replace(old, new, 1)).data["field"] == field


def test_queries_that_a_plugin_makes_are_not_known() -> None:
    text = SLOTH.replace(
        "{raw: {error_ratio_query: 'chat:errors:ratio{window=\"{{.window}}\"}'}}", "{plugin: {id: a/b}}"
    )
    assert refused(NoCounterpart, text).data["field"] == "slos[2].sli.plugin"


def test_sloth_and_openslo_are_read_together() -> None:
    assert [slo.name for slo in read(SLOTH, slo()).slos] == ["answered", "quick", "ready-made", "chat-up"]


# --- templates ---


def test_a_template_brings_parties_and_money() -> None:
    template = dict(load_agreement(EXAMPLES / "agreement.yaml").document)
    (rule,) = template["compensation"]["rules"]
    tiers = {"chat-up": [{"below": "99.5", "credit_percent": "10"}], "ttft": rule["tiers"]["ttft"]}
    template["compensation"] = {**template["compensation"], "rules": [{**rule, "tiers": tiers}]}
    (draft,) = make_drafts(read(slo()).slos, template)
    agreement = Agreement.from_document(draft.document)
    assert agreement.issuer.name == "Example Provider Ltd"
    assert not [note for note in draft.notes if note.kind is NoteKind.PLACEHOLDER]
    assert [note.value for note in draft.notes if "the template pays" in note.message] == ["ttft"]
    assert settled(agreement, [(98, 2)]).credit == 80_000
    assert settled(agreement, [(998, 2)]).credit == 0


def test_equal_slos_give_equal_drafts_and_others_another_nonce() -> None:
    assert only_draft(slo()).document == only_draft(slo()).document
    assert only_draft(slo()).document["nonce"] != only_draft(slo("target: 0.9")).document["nonce"]


# --- hostile input ---


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\n---\n",
        "- 1",
        "plain",
        "[[]]",
        "a: &x 1\nb: *x",
        "!!python/object:os.system {}",
        "apiVersion: openslo/v1\napiVersion: openslo/v1",
        "[" * 40 + "]" * 40,
        "\x00",
        "a: b\n" + "#" * MAX_BYTES,
        "---\na: 1\n" * 1001,
    ],
)
def test_what_is_no_document_is_refused_with_its_line(text: str) -> None:
    assert refused(DocumentInvalid, text).data["line"] >= 1


def test_the_first_fault_in_a_set_refuses_all_of_it() -> None:
    error = refused(DocumentInvalid, slo(), slo("target: 2"))
    assert error.data["file"] == "b.yaml"
