"""Write examples/requests.ndjson: one synthetic day of the service example-chat, 2023-06-14 in UTC.

    python examples/make_requests.py > examples/requests.ndjson
    python examples/make_requests.py --selected > examples/requests-selected.ndjson

The same seed gives the same bytes. Most hours are healthy. From 09:00 to 12:00 the service is overloaded: some
requests are refused (429) or break off (503), and first tokens come late, so the day misses its availability
and its first-token objective and keeps its response objective. One row is a repeat and two cannot be used.

With ``--selected`` it is the same day, for objectives that are about some of the requests: rows name their model, some
prompts are long and their first tokens late, some rows do not say how long they are, and from 20:00 to 22:00 every
third request is answered by the next version of the model. One row more has tokens that are no number.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

SEED = 20230614
DAY = datetime(2023, 6, 14, tzinfo=UTC)
OVERLOADED_HOURS = range(9, 12)
MODEL, NEXT_MODEL = "chat-7b 2.1", "chat-7b 2.2"


def requests() -> Iterator[dict[str, Any]]:
    """The day's requests in order of start."""
    draw = random.Random(SEED)  # noqa: S311 - a sample, not a secret
    serial = 0
    for hour in range(24):
        for second in sorted(draw.sample(range(3600), 40 if 6 <= hour < 22 else 15)):
            started = DAY + timedelta(hours=hour, seconds=second, microseconds=draw.randrange(10**6))
            yield _request(draw, serial, started, overloaded=hour in OVERLOADED_HOURS)
            serial += 1


def _request(draw: random.Random, serial: int, started: datetime, *, overloaded: bool) -> dict[str, Any]:
    chance = draw.random()
    code, message = None, ""
    if overloaded and chance < 0.10:
        code, message = 429, "rate limited"
    elif overloaded and chance < 0.16:
        code, message = 503, "upstream closed the stream"
    output_tokens = draw.randrange(60, 180)
    first_token_s = round(draw.uniform(0.18, 0.55) + (draw.uniform(0.1, 0.9) if overloaded else 0), 9)
    response_s = round(first_token_s + output_tokens * draw.uniform(0.006, 0.009), 9)
    return {
        "request_id": f"chat-{serial:05}",
        "started_at": started.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "service": "example-chat",
        "ttft_s": first_token_s if code is None else 0,
        "e2e_s": response_s if code is None else 0,
        "input_tokens": draw.randrange(100, 900),
        "output_tokens": output_tokens if code is None else 0,
        "error_code": code,
        "error_msg": message,
    }


def _selected(serial: int, row: dict[str, Any]) -> dict[str, Any]:
    """A row of the day as ``--selected`` has it: by its number, so that nothing more is drawn."""
    tried = serial % 3 == 0 and "T20:" <= row["started_at"][10:14] <= "T21:"
    found = {**row, "model": NEXT_MODEL if tried else MODEL}
    if serial % 8 == 0:
        found["input_tokens"] = (4096, 4097, 16_000)[serial // 8 % 3]
    if serial % 50 == 49:
        del found["input_tokens"]
    late = tried or found.get("input_tokens", 0) > 4096
    if late and row["error_code"] is None:
        found |= {name: round(row[name] + 0.7, 9) for name in ("ttft_s", "e2e_s")}
    return found


def main(selected: bool) -> None:
    """Write the sample to stdout."""
    rows = list(requests())
    if selected:
        rows = [_selected(serial, row) for serial, row in enumerate(rows)]
    unusable = [
        {**rows[100], "request_id": "chat-clock", "started_at": "2023-06-14T05:00:00"},
        {**rows[200], "request_id": "chat-late", "ttft_s": None},
    ]
    if selected:
        unusable.append({**rows[300], "request_id": "chat-uncounted", "input_tokens": "many"})
    for row in [*rows, rows[300], *unusable]:
        sys.stdout.write(json.dumps(row, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main("--selected" in sys.argv[1:])
