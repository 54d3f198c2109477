"""Figures that occur nowhere else, so that an answer which holds one has leaked it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

CANARIES = {
    "credit": "2717171",
    "base": "31313.13",
    "percent": "17.39",
    "target": "97.6543",
    "threshold": "839.17",
    "cap": "6167.61",
    "longest": "6367",
    "reason": "the share of 43.71 % has no tier of its own",
}
SPELLINGS = {
    "credit": ("2717171", "27171.71", "27,171.71"),
    "base": ("31313.13", "3131313"),
    "percent": ("17.39", "17,39"),
    "target": ("97.6543", "976543"),
    "threshold": ("839.17", "839170000"),
    "cap": ("6167.61", "616761"),
    "longest": ("6367 s", "PT6367S"),
    "reason": ("43.71",),
}
"""As texts, in minor units, in parts, with separators."""

RANDOM = ("etag", "x-request-id")
"""Headers whose digits are chance."""


def canary_document(document: dict[str, Any]) -> dict[str, Any]:
    """An agreement whose targets, thresholds, tiers and amounts are canaries."""

    def swap(value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: swap(item, key) for key, item in value.items()}
        if isinstance(value, list):
            # The tiers of an objective would all be the same one.
            several = value[:1] if value and isinstance(value[0], dict) and "below" in value[0] else value
            return [swap(item, name) for item in several]
        figures = {
            "target": CANARIES["target"],
            "quantile": f"0.{CANARIES['target'].replace('.', '')}",
            "threshold_ms": CANARIES["threshold"],
            "base": CANARIES["base"],
            "below": CANARIES["target"],
            "credit_percent": CANARIES["percent"],
            "contract": CANARIES["cap"],
            "minimum": CANARIES["cap"],
        }
        return figures.get(name, value)

    changed: dict[str, Any] = swap(document, "")
    release = {"id": "release", "reason": "a new version", "longest": f"PT{CANARIES['longest']}S"}
    return {**changed, "maintenance": {"classes": [release]}}


def found_in(response: Any) -> set[str]:
    """The canaries in the body and the headers of an answer, also where its JSON escapes or splits them."""
    texts = [response.text, *(f"{name}: {value}" for name, value in response.headers.items() if name not in RANDOM)]
    with suppress(ValueError):
        texts.append(json.dumps(response.json(), ensure_ascii=False))
    whole = "\n".join(texts)
    return {name for name, spellings in SPELLINGS.items() if any(each in whole for each in spellings)}
