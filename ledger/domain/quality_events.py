"""Payload of the event that says which rows gave counts that no honest source gives, and so block settlement."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.domain.agreement_schema import BYTES32, NAME
from ledger.domain.event_values import INSTANT_NS, PERIOD, SHA256
from ledger.domain.schema import Integer, ListOf, Object, OneOf, Shape, Text

MAX_ROWS = 100
"""Rows of one event; a batch that has more of them is several events."""

_ROW = Object(
    {
        "sample_id": Text(max_length=512, what="the sample's id"),
        "line": Integer(1),
        "indicator": Text(max_length=80, what="what was measured"),
        "field": Text(max_length=80, what="the member that is wrong"),
        "value": Text(max_length=200, what="what the row says"),
        "message": Text(max_length=300, what="what is wrong, for people"),
        "at_ns": INSTANT_NS,
    }
)

QUALITY_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    "data_quality_reported": {
        "sla_id": BYTES32,
        "source": NAME,
        "period": PERIOD,
        # The batch that they stand in.
        "digest": SHA256,
        "reason": OneOf(("implausible",)),
        "rows": ListOf(_ROW, 1, MAX_ROWS),
    },
}
