"""Logs of a service: one JSON object a line on stderr, or text for people.

Everything that logs by the standard library comes out the same way: this product, the web server, the workers.
Neither headers nor bodies nor database URLs are ever logged.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, WrappedLogger

from ledger.settings import LogFormat, LogSettings

_QUIET = ("urllib3", "web3", "eth", "asyncio")
"""They tell of every request they make, with its address, at levels that would show."""


def configure_logs(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Send every log record of this process to ``stream`` (stderr)."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(sort_keys=True, ensure_ascii=False)
        if settings.format is LogFormat.JSON
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _one_line, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    # Warnings of Python would be lines of another format.
    logging.captureWarnings(capture=True)


def log_notice(message: str) -> None:
    """A notice of a service (``Notify``) as a log record."""
    logging.getLogger("ledger").warning(message)


def _one_line(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    # A line break in a message would let whoever wrote it write a line of its own.
    event.pop("color_message", None)  # the web server's, for terminals
    event["event"] = str(event.get("event", "")).replace("\n", "\\n").replace("\r", "\\r")
    return event
