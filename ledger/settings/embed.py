"""Which pages may frame the dashboard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ledger.errors import SettingInvalid
from ledger.settings.reading import MAX_PORT, is_loopback

_SLA_ID = re.compile(r"0x[0-9a-f]{64}", re.ASCII)
_ORIGIN = re.compile(r"(https?)://([a-z0-9.-]{1,253}|\[[0-9a-f:]{2,45}\])(:[1-9][0-9]{0,4})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class EmbedSettings:
    """Which pages may frame the dashboard: origins by agreement, and origins for every agreement.

    An origin is written as a browser spells it: scheme, host in lower case, port where it is not the scheme's.
    """

    of_all: tuple[str, ...] = ()
    of_agreement: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> EmbedSettings:
        """``SLA_LEDGER_EMBED_ANCESTORS``: entries ORIGIN or SLA_ID=ORIGIN with blanks between them."""
        of_all: list[str] = []
        of_agreement: dict[str, tuple[str, ...]] = {}
        for entry in environ.get("SLA_LEDGER_EMBED_ANCESTORS", "").split():
            sla_id, equals, origin = entry.rpartition("=")
            if not _is_framing_origin(origin) or (equals and not _SLA_ID.fullmatch(sla_id)):
                raise SettingInvalid(
                    f"SLA_LEDGER_EMBED_ANCESTORS: {entry[:100]!r} is neither ORIGIN nor SLA_ID=ORIGIN; an origin is "
                    "https://portal.example, without a path (http only on this machine)",
                    setting="embed_ancestors",
                )
            if equals:
                of_agreement[sla_id] = (*of_agreement.get(sla_id, ()), origin)
            else:
                of_all.append(origin)
        return cls(tuple(of_all), of_agreement)

    def ancestors(self, sla_id: str) -> tuple[str, ...]:
        """Origins of the pages that may frame this agreement's dashboard; none: it is a page of its own only."""
        return tuple(dict.fromkeys((*self.of_all, *self.of_agreement.get(sla_id, ()))))


def _is_framing_origin(text: str) -> bool:
    """Plain http is readable by everyone on the way, so it is allowed where there is no way: on this machine."""
    found = _ORIGIN.fullmatch(text)
    if found is None or int((found[3] or ":443")[1:]) > MAX_PORT:
        return False
    return found[1] == "https" or found[2] == "localhost" or is_loopback(found[2].strip("[]"))
