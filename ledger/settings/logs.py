"""How a service process writes its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ledger.errors import SettingInvalid

LOG_LEVELS = ("debug", "info", "warning", "error")


class LogFormat(StrEnum):
    """How a service writes its log."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log of a service process, on stderr."""

    format: LogFormat = LogFormat.TEXT
    level: str = "warning"

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> LogSettings:
        """From ``SLA_LEDGER_LOG_FORMAT`` and ``SLA_LEDGER_LOG_LEVEL``; raises ``SettingInvalid``."""
        form, level = environ.get("SLA_LEDGER_LOG_FORMAT", "text"), environ.get("SLA_LEDGER_LOG_LEVEL", "")
        if form not in tuple(LogFormat):
            raise SettingInvalid(f"SLA_LEDGER_LOG_FORMAT={form[:20]!r} is neither text nor json", setting="log_format")
        # People read warnings; whoever collects JSON wants the requests, too.
        level = level or ("info" if form == LogFormat.JSON else "warning")
        if level not in LOG_LEVELS:
            raise SettingInvalid(
                f"SLA_LEDGER_LOG_LEVEL={level[:20]!r} is none of {', '.join(LOG_LEVELS)}", setting="log_level"
            )
        return cls(LogFormat(form), level)
