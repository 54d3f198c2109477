"""What the page is told by the package that assembles it: schemas, currencies, methods, zone rules.

Everything that Python has as data goes into the page as the same data, so that it cannot come to differ.
"""

from __future__ import annotations

import importlib.resources
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from typing import Any

from ledger.attest.checks.bundle_schema import document_schemas
from ledger.domain import money
from ledger.domain.attested import TEST_CHAIN_IDS
from ledger.domain.credits.charges import CHARGE_LINES
from ledger.domain.events.event_types import EVENT_TYPES
from ledger.domain.methods.ratio import missing_windows
from ledger.domain.methods.registry import METHODS
from ledger.domain.terms.indicators import INDICATORS, SAMPLE_INDICATORS
from ledger.domain.time.calendar import tzdata_version

_DOCUMENTS = ("bundle", "opening", "trust")
_EVENTS = ("statement_issued", "block_sealed", "block_resealed", "exclusion_recorded", "agreement_terminated")
_BOUNDED = re.compile(r"from (\d+) to (\d+)")
DECIMAL_PATTERN = "^(?:0|[1-9][0-9]*)$"
_TZIF = b"TZif"


def page_tables() -> dict[str, Any]:
    """The page's data block as plain JSON."""
    published = document_schemas()
    names, rules = _zones()
    return {
        "schemas": {name: _with_bounds(published[f"{name}.schema.json"]) for name in _DOCUMENTS},
        "events": {
            name: {
                "schema": EVENT_TYPES[name].schema,
                "payload": _with_bounds(EVENT_TYPES[name].payload.json_schema()),
            }
            for name in _EVENTS
        },
        "chargeLines": _with_bounds(CHARGE_LINES.json_schema()),
        "currencies": {code: money.currency_exponent(code) for code in money.CURRENCIES},
        "methods": {
            name: {
                "unit": method.unit,
                "notAttestable": method.not_attestable,
                # Whether its incidents are windows that miss the target by their own counts.
                "byRatio": method.breaches is missing_windows,
            }
            for name, method in METHODS.items()
        },
        "indicators": {
            name: {
                "unit": indicator.unit,
                "namedBy": indicator.named_by,
                "sampled": name in SAMPLE_INDICATORS,
            }
            for name, indicator in INDICATORS.items()
        },
        "testChains": sorted(map(str, TEST_CHAIN_IDS)),
        "tzdata": tzdata_version(),
        "zones": names,
        "zoneRules": rules,
    }


def _with_bounds(schema: Any) -> Any:
    """The schema with the bounds of decimal texts as members; JSON Schema has them in the description alone."""
    if isinstance(schema, list):
        return [_with_bounds(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {key: _with_bounds(value) for key, value in schema.items()}
    if schema.get("pattern") == DECIMAL_PATTERN and schema.get("type") == "string":
        bounds = _BOUNDED.search(schema["description"])
        if bounds is None:
            raise ValueError(f"a decimal text without bounds: {schema['description']}")
        found |= {"decimalMinimum": bounds[1], "decimalMaximum": bounds[2]}
    return found


def _zones() -> tuple[dict[str, int], list[str]]:
    """By zone name the place of its rules, and all rules in base64; names that mean the same zone share them."""
    places: dict[bytes, int] = {}
    names = {}
    for name, data in sorted(_zone_files(importlib.resources.files("tzdata").joinpath("zoneinfo"), "")):
        names[name] = places.setdefault(data, len(places))
    return names, [b64encode(data).decode() for data in places]


def _zone_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _zone_files(each, f"{prefix}{each.name}/")
        elif (data := each.read_bytes()).startswith(_TZIF):
            yield f"{prefix}{each.name}", data
