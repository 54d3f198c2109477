from __future__ import annotations

import io
import json
import logging

import pytest

from ledger.errors import SettingInvalid
from ledger.settings import LogFormat, LogSettings
from ledger.wiring.logs import configure_logs, log_notice

pytestmark = pytest.mark.usefixtures("logs_put_back")


def lines(settings: LogSettings) -> io.StringIO:
    stream = io.StringIO()
    configure_logs(settings, stream)
    return stream


JSON = LogSettings(LogFormat.JSON, "info")


def test_each_record_is_one_json_object_on_one_line() -> None:
    stream = lines(JSON)
    logging.getLogger("api.edge").info("request", extra={"status": 200, "route": "/v1/statements"})
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logging.getLogger("ledger").exception('failed\n{"event": "forged"}')
    log_notice("the sequencer goes on")
    first, second, third = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (first["event"], first["status"], first["level"], first["logger"]) == ("request", 200, "info", "api.edge")
    assert first["timestamp"].endswith("Z")
    assert second["event"] == 'failed\\n{"event": "forged"}'
    assert "ValueError: first" in second["exception"]
    assert third["event"] == "the sequencer goes on"


def test_text_is_for_people_and_says_less() -> None:
    stream = lines(LogSettings())
    logging.getLogger("api.edge").info("request")
    logging.getLogger("ledger").warning("something to see")
    assert "something to see" in stream.getvalue()
    assert "request" not in stream.getvalue()


def test_talkative_libraries_keep_quiet() -> None:
    stream = lines(LogSettings(LogFormat.JSON, "debug"))
    logging.getLogger("urllib3.connectionpool").debug("https://user:password@node.example")
    assert stream.getvalue() == ""


def test_settings_from_the_environment() -> None:
    assert LogSettings.read({}) == LogSettings(LogFormat.TEXT, "warning")
    assert LogSettings.read({"SLA_LEDGER_LOG_FORMAT": "json"}) == JSON
    assert LogSettings.read({"SLA_LEDGER_LOG_LEVEL": "error"}) == LogSettings(LogFormat.TEXT, "error")


@pytest.mark.parametrize("name", ["SLA_LEDGER_LOG_FORMAT", "SLA_LEDGER_LOG_LEVEL"])
def test_a_value_that_cannot_be_used_is_refused(name: str) -> None:
    with pytest.raises(SettingInvalid, match=name):
        LogSettings.read({name: "loud"})
