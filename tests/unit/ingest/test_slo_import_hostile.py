"""Documents that somebody broke: an import gives drafts or an error with a code and a line, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.domain.terms.agreement import Agreement
from ledger.errors import DocumentInvalid
from ledger.ingest.slo_draft import Draft, make_drafts
from tests.unit.ingest.slo_cases import read
from tests.unit.ingest.test_slo_import import SLI, SLOTH, V1ALPHA, V2ALPHA, slo

pytestmark = pytest.mark.slow

ALERTS = """
alertPolicies:
    - kind: AlertPolicy
      metadata: {name: page}
      spec:
        conditions: [{kind: AlertCondition, metadata: {name: burn}, spec: {severity: page,
          condition: {kind: burnrate, op: gt, threshold: 2, lookbackWindow: 1h}}}]
        notificationTargets: [{kind: AlertNotificationTarget, metadata: {name: mail}, spec: {target: email}}]
  indicatorRef: answers"""
WHOLE = [
    yaml.load(text, Loader=yaml.BaseLoader) for text in (slo(), slo(more=ALERTS.strip()), SLI, SLOTH, V1ALPHA, V2ALPHA)
]
ODD = st.one_of(
    st.none(),
    st.sampled_from(["", "0", "-1", "1e99", "1.5", "NaN", "true", "1m", "9999999M"]),
    st.sampled_from(["openslo/v1", "SLO", "\u202e", "x" * 300]),
    st.sampled_from([[], {}, [None], [[]], {"a": None}, {"": ""}, {"alertPolicies": ["x"]}, {"metadata": {}}]),
    st.text(max_size=8),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*at, key))


def drafts_or_error(text: str) -> list[Draft] | DocumentInvalid:
    try:
        return make_drafts(read(text, keep_references=True).slos)
    except DocumentInvalid as error:
        return error


PLACES = [(index, at) for index, whole in enumerate(WHOLE) for at in places(whole) if at]


def test_the_documents_are_whole_before_they_are_broken() -> None:
    assert len(read(json.dumps(WHOLE)).slos) == 7


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD, st.booleans()), min_size=1, max_size=3))
def test_a_broken_set_is_refused_or_becomes_agreements(changes: list[tuple[Any, Any, bool]]) -> None:
    documents = copy.deepcopy(WHOLE)
    for (index, at), odd, added in changes:
        holder: Any = documents[index]
        try:
            for key in at[:-1]:
                holder = holder[key]
            if added and isinstance(holder, dict):
                holder["unknown"] = odd
            else:
                holder[at[-1]] = odd
        except (KeyError, IndexError, TypeError):
            continue
    text = yaml.safe_dump_all(documents, allow_unicode=True)
    found = drafts_or_error(text)
    if isinstance(found, DocumentInvalid):
        assert found.code in ("document_invalid", "reference_unresolved", "no_counterpart")
        assert found.message.startswith("a.yaml:")
    else:
        for draft in found:
            Agreement.from_document(draft.document)


@pytest.mark.parametrize("said", ["123456789012345.00000000000000000001", "0.0000000009999999999", "1e15"])
def test_bounds_are_not_rounded_into_range(said: str) -> None:
    spec = "{metricSource: {spec: {query: q}}}"
    text = slo(
        f"target: 0.9, op: lte, value: {said}",
        more=f"indicator: {{metadata: {{name: answers}}, spec: {{thresholdMetric: {spec}}}}}",
    )
    with pytest.raises(DocumentInvalid) as caught:
        read(text)
    assert caught.value.code == "no_counterpart"
