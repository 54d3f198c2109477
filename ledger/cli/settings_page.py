"""The generated tables of the settings reference. The prose around them is written by hand and stays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ledger.errors import BadInput
from ledger.settings.registry import EVERYBODY, SETTINGS, Reader, Setting, Topic

PAGE = "docs/settings.md"
_TABLE = re.compile(r"<!-- table (\w+):[^\n]*-->\n.*?<!-- end -->", re.DOTALL)
_HEADER = "| environment | argument | default | read by | meaning |\n|---|---|---|---|---|"


def settings_page() -> Mapping[str, str]:
    """``docs/settings.md`` of this clone with its tables made anew. Raises ``BadInput`` where one has no place."""
    text = (Path(__file__).resolve().parents[2] / PAGE).read_text(encoding="utf-8")
    places = _TABLE.findall(text)
    if sorted(places) != sorted(Topic):
        raise BadInput(f"{PAGE} must have one place `<!-- table NAME: ... --> <!-- end -->` for each of {list(Topic)}")
    return {PAGE: _TABLE.sub(lambda found: _table(Topic(found[1])), text)}


def _table(topic: Topic) -> str:
    rows = [_row(setting) for setting in SETTINGS if setting.topic is topic]
    note = f"<!-- table {topic}: made by `sla-ledger generate` from ledger/settings/registry.py -->"
    return "\n".join([note, _HEADER, *rows, "<!-- end -->"])


def _row(setting: Setting) -> str:
    readers = "all" if setting.readers == EVERYBODY else ", ".join(_reader(reader) for reader in setting.readers)
    argument = f"`{setting.argument}`" if setting.argument else ""
    meaning = setting.meaning + (" (secret)" if setting.secret else "")
    return f"| `{setting.name}` | {argument} | {setting.default} | {readers} | {meaning} |"


def _reader(reader: Reader) -> str:
    return str(reader) if reader is Reader.COMMANDS else f"`{reader}`"
