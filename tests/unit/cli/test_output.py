"""What commands print beside their result."""

from __future__ import annotations

import re
import time

import pytest

from ledger.cli import output


def test_work_that_takes_long_is_said_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "PROGRESS_AFTER_S", 0.0)
    with output.ticking("verifying 1 bundle(s)"):
        until = time.monotonic() + 10
        while not (said := capsys.readouterr().err) and time.monotonic() < until:
            time.sleep(0.05)
    assert re.fullmatch(r"verifying 1 bundle\(s\): \d+ s so far\n", said)


def test_work_that_is_soon_over_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with output.ticking("verifying 1 bundle(s)"):
        pass
    assert capsys.readouterr().err == ""


def test_what_nobody_sees_is_written_out_in_texts_and_documents() -> None:
    assert output.visible({"a\nb": ["c\x1b[2K", ("\u202ed", 7, None)]}) == {
        "a\\u000ab": ["c\\u001b[2K", ["\\u202ed", 7, None]]
    }
    assert output.visible("Größe 1 €") == "Größe 1 €"
