"""Scraped text: Prometheus 0.0.4 and OpenMetrics 1.0, by the parsers of prometheus-client, chosen by Content-Type.

Those stop at the first line they cannot read. Then each line is read by itself, so that one bad line costs one
sample and is named. The text parser reads an exemplar (``# {...}``) as a timestamp; such lines are refused in text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from ledger.app.facts.telemetry import RawTelemetry
from ledger.domain.rows.telemetry import Doubt, EvidenceKind, Reading, Refusal, SampleVerdict, ServiceReadings
from ledger.ingest.catalogue import Catalogue, make_sample
from ledger.ingest.reading import MAX_INSTANT_NS, clean, unusable

TEXT = "text/plain"
OPENMETRICS = "application/openmetrics-text"
MAX_LINE_CHARS = 64_000

_TYPE = re.compile(r"#[ \t]+TYPE[ \t]+(\S+)[ \t]+(\w+)")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_EXEMPLAR = re.compile(r"\s#\s\{.*\Z")
_LAST = re.compile(r"(\[[^\[\]]{1,60}\]|ERR!|N/A|-)\s*\Z")
_CREATED = "_created"
_PARTS = ("_bucket", "_sum", "_count", "_total")
_YEAR_1971_S, _YEAR_2262_S = 31_536_000, 9_214_646_400
_CUMULATIVE = frozenset({"counter", "histogram", "summary"})
_EOF = "# EOF"

# The parsers leave by whatever their string handling raises.
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)

_Begun = tuple[str, frozenset[tuple[str, str]]]
_PROCESS: _Begun = ("", frozenset())
_UNKNOWN = Catalogue(EvidenceKind.SERVER_METRIC, {}, lambda _labels: "")
"""Of an exporter that nobody has to know anything of."""


class Line(NamedTuple):
    """One sample as the text has it. ``at_ns`` None: without a time; ``number`` 0: its line is not known."""

    name: str
    labels: dict[str, str]
    value: int | float
    at_ns: int | None
    number: int


class Read(NamedTuple):
    """An exposition: its samples, the lines that cannot be read, the type of each metric, and when series began."""

    lines: list[Line]
    refusals: list[Refusal]
    kinds: Mapping[str, str]
    starts: Mapping[_Begun, int]


def read_lines(media_type: str, data: bytes, catalogue: Catalogue = _UNKNOWN) -> Read:
    """What an exposition says. Raises ``TelemetryUnusable`` where it is none at all."""
    text = _text(media_type, data)
    lines, refusals = _lines(media_type, text, catalogue)
    kinds = {match[1]: match[2] for match in map(_TYPE.match, text.split("\n")) if match}
    return Read(lines, refusals, kinds, _start_times(lines))


def read_scrape(raw: RawTelemetry, catalogue: Catalogue) -> list[ServiceReadings]:
    """The samples of one scrape. Raises ``TelemetryUnusable`` where it is no exposition at all."""
    lines, refusals, kinds, starts = read_lines(raw.media_type, raw.data, catalogue)
    at_ns = 0 if raw.scraped_at_ns is None else raw.scraped_at_ns
    process_start_ns = starts.get(_PROCESS)
    readings: list[Reading] = list(refusals)
    for line in lines:
        if line.name.endswith(_CREATED):
            continue
        base = _base(line.name, kinds)
        cumulative = kinds.get(base) in _CUMULATIVE or (base not in kinds and line.name.endswith("_total"))
        start_ns = starts.get(_begun(base.removesuffix("_total"), line.labels), process_start_ns)
        readings.append(
            make_sample(
                catalogue,
                line.name,
                line.labels,
                line.value,
                at_ns if line.at_ns is None else line.at_ns,
                f"line {line.number}" if line.number else clean(line.name),
                cumulative=cumulative,
                start_ns=start_ns if cumulative else None,
            )
        )
    if not readings:
        raise unusable("body", "the exposition has no sample", Doubt.FIELD_MISSING)
    return [ServiceReadings(raw.service, "service", readings)]


def _text(media_type: str, data: bytes) -> str:
    if media_type not in (TEXT, OPENMETRICS):
        raise unusable("Content-Type", f"{media_type[:80]!r} is neither {TEXT} nor {OPENMETRICS}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise unusable("body", f"is no UTF-8 (byte {error.start})") from None
    start = text.lstrip()[:1]
    if start in ("{", "[", "<") and not re.match(r'\s*\{"[a-zA-Z_:][^"]*"[,}]', text):
        raise unusable("body", "is JSON or HTML and no exposition: does the URL name the metrics endpoint?")
    if media_type == OPENMETRICS and not text.rstrip("\n").endswith(_EOF):
        raise unusable("body", f"does not end with {_EOF!r}: it was cut off")
    return text


def _lines(media_type: str, text: str, catalogue: Catalogue) -> tuple[list[Line], list[Refusal]]:
    openmetrics = media_type == OPENMETRICS
    if openmetrics or "# {" not in text:
        try:
            return list(_of_families((openmetrics_families if openmetrics else text_families)(text))), []
        except _UNREADABLE:
            pass
    return _one_by_one(text, openmetrics, catalogue)


def _one_by_one(text: str, openmetrics: bool, catalogue: Catalogue) -> tuple[list[Line], list[Refusal]]:
    lines: list[Line] = []
    refusals: list[Refusal] = []
    for number, written in enumerate(text.split("\n"), 1):
        line = _EXEMPLAR.sub("", written) if openmetrics else written
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"line {number}"
        if not openmetrics and "# {" in _QUOTED.sub("", line):
            message = "an exemplar in text/plain; send it as application/openmetrics-text"
            refusals.append(_rejected(Doubt.EXEMPLAR_IN_TEXT, where, line, message))
            continue
        if len(line) > MAX_LINE_CHARS:
            refusals.append(_rejected(Doubt.MALFORMED, where, line, f"is longer than {MAX_LINE_CHARS} characters"))
            continue
        try:
            # The text format counts milliseconds and OpenMetrics seconds.
            lines += _of_families(text_families(line), number, scale=1000 if openmetrics else 1)
        except _UNREADABLE as error:
            refusals.append(_bad_line(line, where, str(error), catalogue))
    return lines, refusals


def _bad_line(line: str, where: str, message: str, catalogue: Catalogue) -> Refusal:
    last = _LAST.search(line)
    doubt = catalogue.absences.get(last[1]) if last is not None else None
    if last is None or doubt is None:
        return _rejected(Doubt.MALFORMED, where, line, f"cannot be read: {clean(message)}")
    name = clean(re.split(r"[{\s]", line.strip(), maxsplit=1)[0])
    return Refusal(SampleVerdict.QUARANTINED, doubt, f"{where}: {name}", last[1], f"{name} has no value: {last[1]}")


def _of_families(families: Iterable[Any], number: int = 0, *, scale: int = 1) -> Iterator[Line]:
    for family in families:
        for sample in family.samples:
            at_ns = None if sample.timestamp is None else round(float(sample.timestamp) * scale * 1000) * 10**6
            if at_ns is not None and not 0 <= at_ns <= MAX_INSTANT_NS:
                raise ValueError(f"the time {sample.timestamp} is outside the years 1970 to 2262")
            yield Line(sample.name, sample.labels, sample.value, at_ns, number)


def _base(name: str, kinds: Mapping[str, str]) -> str:
    """The name a TYPE line gives, without what the parts of a histogram or counter add to it."""
    if name in kinds:
        return name
    for part in _PARTS:
        if name.endswith(part) and name[: -len(part)] in kinds:
            return name[: -len(part)]
    return name


def _start_times(lines: Iterable[Line]) -> dict[_Begun, int]:
    """When each counter and histogram began (``_created``), and when the process did (``_PROCESS``); nonsense counts as
    unknown."""
    starts: dict[_Begun, int] = {}
    for line in lines:
        if not _YEAR_1971_S <= line.value < _YEAR_2262_S:
            continue
        start_ns = int(line.value * 1000) * 10**6
        if line.name == "process_start_time_seconds":
            starts[_PROCESS] = start_ns
        elif line.name.endswith(_CREATED):
            starts[_begun(line.name.removesuffix(_CREATED), line.labels)] = start_ns
    return starts


def _begun(name: str, labels: dict[str, str]) -> _Begun:
    return name, frozenset((key, value) for key, value in labels.items() if key not in ("le", "quantile"))


def _rejected(reason: Doubt, where: str, line: str, message: str) -> Refusal:
    return Refusal(SampleVerdict.REJECTED, reason, where, clean(line, 80), message)
