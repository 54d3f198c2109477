"""Payload of the event that says which rows gave counts that no honest source gives, and so block settlement."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.domain.record.event_values import INSTANT_NS, PERIOD, SHA256
from ledger.domain.schema import Integer, ListOf, Object, OneOf, Shape, Text
from ledger.domain.terms.agreement_schema import BYTES32, NAME

MAX_ROWS = 100
"""Rows of one event; a batch that has more of them is several events."""

REPORTED = "data_quality_reported"
MAX_ID_CHARS, MAX_VALUE_CHARS, MAX_MESSAGE_CHARS = 512, 200, 300

# Of a feed (``ledger.domain.facts.feeds``) the row is told by what its fact is, and the indicator is the kind of feed.
_ROW = Object(
    {
        "sample_id": Text(max_length=MAX_ID_CHARS, what="the sample's id"),
        "line": Integer(1),
        "indicator": Text(max_length=80, what="what was measured"),
        "field": Text(max_length=80, what="the member that is wrong"),
        "value": Text(max_length=MAX_VALUE_CHARS, what="what the row says"),
        "message": Text(max_length=MAX_MESSAGE_CHARS, what="what is wrong, for people"),
        "at_ns": INSTANT_NS,
    }
)

QUALITY_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    REPORTED: {
        "sla_id": BYTES32,
        "source": NAME,
        "period": PERIOD,
        # The batch that they stand in.
        "digest": SHA256,
        "reason": OneOf(("implausible",)),
        "rows": ListOf(_ROW, 1, MAX_ROWS),
    },
}
