"""What scenario files write in short: members of agreements, request rows, and heartbeats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ledger.domain.terms.log_kinds import COUNTERS, HISTOGRAMS, OUTAGES
from ledger.domain.time.instant import SECOND_NS, format_instant_ns, parse_instant_ns
from tests.unit.domain.samples import put

_WHOLE_NUMBERS = {
    *("input_tokens_at_most", "minimum_valid", "minimum_run", "consecutive"),
    *("cap_minutes", "count"),
}


def merged(said: dict[str, Any]) -> dict[str, Any]:
    """The members of a case with those of the one that its ``<<`` names."""
    own = {path: value for path, value in said.items() if path != "<<"}
    return {**merged(said["<<"]), **own} if "<<" in said else own


def set_member(plain: dict[str, Any], path: str, value: object) -> None:
    """Set a member of a document by its path; an empty text takes it out."""
    put(plain, path, _typed(value))
    if value == "":
        parent, _, name = path.rpartition(".")
        del (plain[parent] if parent else plain)[name]


def request_lines(item: Any, service: str) -> Iterator[str]:
    """The lines of a request log that a row in short stands for."""
    if isinstance(item, dict):
        for number in range(int(item["repeat"])):
            request_id, rest = item["row"].split(" ", 1)
            yield from request_lines(f"{request_id}-{number} {rest}", service)
        return
    request_id, time, code, *others = item.split()
    latencies = [each for each in others if "=" not in each]
    more = dict(each.split("=", 1) for each in others if "=" in each)
    # The figures go into the line as they stand, so that no float comes between scenario and reader.
    shown = {name: f"{value}e-3" for name, value in zip(("ttft_s", "e2e_s"), latencies, strict=False)}
    members = {
        "request_id": json.dumps(request_id),
        "started_at": json.dumps(instant(time)),
        "service": json.dumps(service),
        "error_code": "null" if code == "ok" else code,
        **shown,
        **more,
    }
    yield "{" + ",".join(f'"{key}":{value}' for key, value in members.items()) + "}"


def heartbeat_lines(item: Any, service: str) -> str:
    """The lines of a heartbeat log that ``id time covers_s`` stands for, or ``from``, ``to``, ``every_s`` and
    ``covers_s`` of many."""
    if isinstance(item, dict):
        start_ns, end_ns = (parse_instant_ns(item[name]) for name in ("from", "to"))
        step_ns = int(item["every_s"]) * SECOND_NS
        said = (f"{format_instant_ns(at_ns)} {item['covers_s']}" for at_ns in range(start_ns, end_ns + 1, step_ns))
        return "".join(heartbeat_lines(f"{item['from']}-{at} {each}", service) for at, each in enumerate(said) if at)
    name, time, covers_s = item.split()
    return json.dumps({"heartbeat_id": name, "at": instant(time), "service": service, "covers_s": int(covers_s)}) + "\n"


def feed_log(kind: str, items: Iterable[str], service: str) -> bytes:
    """The log of a feed that rows in short stand for."""
    lines = [{**_FEED_ROWS[kind](*item.split()), "service": service} for item in items]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def instant(time: str) -> str:
    """A time of 2023-06-14, or any."""
    return time if "T" in time else f"2023-06-14T{time}Z"


def _members(words: Iterable[str]) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in (word.split("=", 1) for word in words if "=" in word)}


def _outage(name: str, *words: str) -> dict[str, Any]:
    times = [instant(word) for word in words if "=" not in word]
    return {"outage_id": name, **dict(zip(("from", "to"), times, strict=False)), **_members(words)}


def _counter(counter: str, series: str, time: str, value: str, *words: str) -> dict[str, Any]:
    return {"counter": counter, "series": {"pod": series}, "at": instant(time), "value": value, **_members(words)}


def _histogram(histogram: str, series: str, time: str, *words: str) -> dict[str, Any]:
    """The words are the buckets, each ``le:count``."""
    buckets = {bound: int(count) for bound, count in (word.split(":") for word in words)}
    return {"histogram": histogram, "series": {"pod": series}, "at": instant(time), "buckets": buckets}


_FEED_ROWS: dict[str, Callable[..., dict[str, Any]]] = {OUTAGES: _outage, COUNTERS: _counter, HISTOGRAMS: _histogram}


def _typed(value: Any, name: str = "") -> Any:
    """Scenarios are read as texts; the few members that are whole numbers become them."""
    if isinstance(value, dict):
        return {key: _typed(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_typed(each) for each in value]
    return int(value) if name in _WHOLE_NUMBERS else value
