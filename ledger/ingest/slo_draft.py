"""Imported SLOs as drafts of agreements.

An agreement is about one service and one kind of period, so SLOs are put together by both. What an SLO cannot say
(parties, keys, money, who collects) comes from a template, or is a placeholder that the report lists.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.objective_shapes import MAX_OBJECTIVES
from ledger.domain.terms.periods import MAX_WINDOWS
from ledger.domain.time.calendar import PeriodLength, add_months, parse_period_length
from ledger.errors import DocumentInvalid, NoCounterpart
from ledger.ingest.slo_model import Note, NoteKind, Place, Slo, TimeWindow
from ledger.ingest.slo_objectives import objective_document, window_text
from ledger.ingest.slo_values import DAY_S

_DEFAULT_PERIOD = PeriodLength(1, "M")
_GRIDS_S = (300, 900, 1800)
_ID_LENGTH = 40
_REPLACE = "REPLACE"
_PERIOD_MEMBERS = ("effective", "timezone", "period", "anchor", "day_start", "step", "partial_periods")


@dataclass(frozen=True, slots=True)
class Draft:
    """An agreement document that nobody has signed yet, what it was made from, and what is to be known about it."""

    document: Mapping[str, Any]
    slos: tuple[Slo, ...]
    notes: tuple[Note, ...]

    @property
    def name(self) -> str:
        """A file name without its ending."""
        return re.sub(r"[^a-z0-9]+", "-", str(self.document["service"]["name"]).lower()).strip("-") or "service"


def make_drafts(slos: Sequence[Slo], template: Mapping[str, Any] | None = None) -> list[Draft]:
    """One draft for each service and time window, in the order of the SLOs.

    ``template`` is the document of a valid agreement. Raises ``NoCounterpart`` where what was imported fits no
    agreement.
    """
    groups: dict[tuple[str, TimeWindow | None], list[Slo]] = {}
    for slo in slos:
        groups.setdefault((slo.service, slo.window), []).append(slo)
    return [_draft(tuple(group), template) for group in groups.values()]


def _draft(slos: tuple[Slo, ...], template: Mapping[str, Any] | None) -> Draft:
    notes: list[Note] = [note for slo in slos for note in slo.notes]
    objectives: list[dict[str, Any]] = []
    taken: set[str] = set()
    spans: list[int] = []
    for slo in slos:
        for promise in slo.promises:
            objective, found = objective_document(promise, _objective_id(promise.name, taken))
            objectives.append(objective)
            notes.extend(found)
            if promise.slices is not None:
                spans.append(promise.slices.seconds)
    place = slos[0].place
    if len(objectives) > MAX_OBJECTIVES:
        raise NoCounterpart(
            f"{place.file}: {len(objectives)} objectives for {slos[0].service!r}; an agreement has at most "
            f"{MAX_OBJECTIVES}. Import fewer files at a time",
            field=place.field,
        )
    base = dict(_placeholders(notes) if template is None else _of_template(template, objectives, place, notes))
    document = {
        **{key: value for key, value in base.items() if key not in _PERIOD_MEMBERS},
        "service": {**base["service"], "name": slos[0].service},
        **_period_terms(slos[0], base, template is not None, notes),
        "objectives": objectives,
    }
    document["window"] = window_text(_window_seconds(parse_period_length(document["period"]), spans))
    document["nonce"] = "0x" + hashlib.sha256(canonical_bytes({**document, "nonce": None})).hexdigest()
    try:
        Agreement.from_document(document)
    except DocumentInvalid as error:
        raise NoCounterpart(
            f"{place.file}: no agreement can be made of {slos[0].name!r}: {error.message}", field=place.field
        ) from error
    return Draft(document, slos, tuple(dict.fromkeys(notes)))


def _window_seconds(length: PeriodLength, spans: Sequence[int]) -> int:
    """Five minutes, or what fills every slice; longer where a period has no slices and too many windows.

    Five, fifteen and thirty minutes fill every period of every zone of today, those with a clock change included.
    """
    if spans:
        return math.gcd(_GRIDS_S[0], *spans)
    days = length.count * {"D": 1, "W": 7, "M": 31}[length.unit]
    return next((grid for grid in _GRIDS_S if days * DAY_S <= grid * MAX_WINDOWS), _GRIDS_S[-1])


def _period_terms(slo: Slo, base: Mapping[str, Any], from_template: bool, notes: list[Note]) -> dict[str, Any]:
    """The members that say which periods there are."""
    window, at = slo.window, slo.window_at
    if window is None:
        source = "the template's" if from_template else "a calendar month"
        notes.append(Note(NoteKind.ASSUMED, at, base["period"], f"no time window is named: {source}"))
        return {key: base[key] for key in _PERIOD_MEMBERS if key in base}
    length = str(window.length)
    if window.start is not None:
        months = max(12, window.length.count if window.length.unit == "M" else 0)
        until = max(add_months(window.start, months), window.length.after(window.start))
        found = {
            "effective": {"from": window.start.isoformat(), "until": until.isoformat()},
            "timezone": window.zone,
            "period": length,
        }
        if window.start_second:
            hours, minutes = divmod(window.start_second // 60, 60)
            found["day_start"] = f"{hours:02}:{minutes:02}"
        return found
    found = {"effective": base["effective"], "timezone": base["timezone"], "period": length}
    if base["compensation"]["rules"]:
        notes.append(
            Note(
                NoteKind.ASSUMED,
                at,
                length,
                "the template pays, and periods that roll would pay one failure many times: periods of this length "
                "follow each other",
            )
        )
        return found
    notes.append(Note(NoteKind.ASSUMED, at, length, "a period begins every day; as it rolls, no rule can pay"))
    return {**found, "step": "P1D"}


def _objective_id(name: str, taken: set[str]) -> str:
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")
    plain = plain if plain[:1].isalpha() else f"slo-{plain}"
    found, number = plain[:_ID_LENGTH], 1
    while found in taken:
        number += 1
        ending = f"-{number}"
        found = plain[: _ID_LENGTH - len(ending)] + ending
    taken.add(found)
    return found


_PLACEHOLDER_NOTES = (
    ("parties", "an SLO does not say who promises what to whom"),
    ("collector", "the key is that of the examples, whose secret is known to all"),
    ("service.class", "text-generation is written"),
    ("tier", "silver is written"),
    ("business_level", "L2 is written; it matters to impact rules only"),
    ("source", "the log that both sides take as the facts"),
    ("coverage_floor", "99 % is written"),
    ("grace", "72 hours are written"),
    ("exclusions", "none are written"),
    ("compensation", "nothing is paid: base 0 and no rules"),
    ("effective", "a year from 2026-01-01, where no calendar window says otherwise"),
)


def _placeholders(notes: list[Note]) -> dict[str, Any]:
    def party(role: str) -> dict[str, str]:
        return {"name": f"{_REPLACE} {role}", "ed25519_public_key": "0" * 64, "evm_address": "0x" + "0" * 40}

    for member, value in _PLACEHOLDER_NOTES:
        notes.append(Note(NoteKind.PLACEHOLDER, Place("", 0, ""), member, value))
    return {
        "apiVersion": "sla-ledger/v1",
        "kind": "Agreement",
        "nonce": "0x" + "0" * 64,
        "parties": {"issuer": party("provider"), "customer": party("customer")},
        "collector": {
            "name": f"{_REPLACE} collector",
            "babyjubjub_public_key": {
                "x": "5299619240641551281634865583518297030282874472190772894086521144482721001553",
                "y": "16950150798460657717958625567821834550301663161624707787222815936182638968203",
            },
        },
        "service": {"name": "", "class": "text-generation"},
        "tier": "silver",
        "business_level": "L2",
        "effective": {"from": "2026-01-01", "until": "2027-01-01"},
        "timezone": "UTC",
        "period": str(_DEFAULT_PERIOD),
        "window": "PT5M",
        "source": {"name": f"{_REPLACE} source", "coverage": "complete_log"},
        "missing_windows": "ignore",
        "coverage_floor": "99",
        "grace": "PT72H",
        "objectives": [],
        "exclusions": [],
        "compensation": {
            "currency": "USD",
            "base": "0",
            "rules": [],
            "tiers_combine": "best",
            "rules_combine": "best",
            "caps": {},
            "minimum": "0",
            "rounding": "half_even",
            "credit_visibility": "public",
        },
    }


def _of_template(
    template: Mapping[str, Any], objectives: Sequence[Mapping[str, Any]], place: Place, notes: list[Note]
) -> dict[str, Any]:
    """The template's terms, without signatures and without what pays for objectives that were not imported."""
    ids = {objective["id"] for objective in objectives}
    here = Place(place.file, place.document, "")
    rules: list[dict[str, Any]] = []
    for rule in template["compensation"]["rules"]:
        kept = dict(rule)
        if "tiers" in rule:
            kept["tiers"] = {key: steps for key, steps in rule["tiers"].items() if key in ids}
            gone = sorted(set(rule["tiers"]) - ids)
        else:
            gone = [rule["objective"]] if rule.get("objective", "") not in {"", *ids} else []
        if gone:
            message = "the template pays for objectives that were not imported; ids come from the SLOs' names"
            notes.append(Note(NoteKind.ASSUMED, here, ", ".join(gone), message))
        if kept.get("tiers", True) and not (gone and "tiers" not in rule):
            rules.append(kept)
    terms = {key: value for key, value in template.items() if key != "signatures"}
    return {**terms, "compensation": {**template["compensation"], "rules": rules}}
