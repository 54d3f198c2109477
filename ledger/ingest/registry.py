"""The formats of telemetry that are read: one line each. To add one, add its module and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ledger.app.facts.telemetry import RawTelemetry
from ledger.domain.rows.telemetry import ServiceReadings
from ledger.errors import MediaTypeUnsupported
from ledger.ingest import breaker, cloudevents, dcgm, envoy, llm_servers, otlp, prometheus
from ledger.ingest.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Format:
    """``read`` raises ``TelemetryUnusable``. ``scraped``: it is fetched from an endpoint and has no times."""

    name: str
    media_types: tuple[str, ...]
    read: Callable[[RawTelemetry], list[ServiceReadings]]
    scraped: bool = False


def _scraped(name: str, catalogue: Catalogue) -> Format:
    read = partial(prometheus.read_scrape, catalogue=catalogue)
    return Format(name, (prometheus.TEXT, prometheus.OPENMETRICS), read, scraped=True)


FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        _scraped("dcgm", dcgm.CATALOGUE),
        *(_scraped(name, catalogue) for name, catalogue in llm_servers.CATALOGUES.items()),
        _scraped("envoy", envoy.CATALOGUE),
        Format("otlp", (otlp.PROTOBUF, otlp.JSON), otlp.read_otlp),
        Format("cloudevents", (cloudevents.STRUCTURED, cloudevents.BATCH), cloudevents.read_cloudevents),
        Format("breaker_json", (breaker.JSON,), breaker.read_breaker_events),
    )
}

SCRAPED = tuple(name for name, each in FORMATS.items() if each.scraped)


def read_telemetry(raw: RawTelemetry) -> Sequence[ServiceReadings]:
    """``ledger.app.facts.telemetry.ReadTelemetry`` over all formats. Raises ``TelemetryUnusable``, and
    ``MediaTypeUnsupported`` where the format does not come as this media type."""
    known = FORMATS[raw.format]
    if raw.media_type not in known.media_types:
        listed = ", ".join(known.media_types)
        raise MediaTypeUnsupported(
            f"Content-Type: {raw.media_type[:80]!r} is not read here; send {listed}",
            field="Content-Type",
            media_types=list(known.media_types),
        )
    return known.read(raw)
