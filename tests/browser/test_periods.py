"""Every period is reached from the dashboard, from the keyboard too, and a renewal keeps where the reader is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from litestar.testing import TestClient
from playwright.sync_api import Page, Route, expect

from ledger.store.database import SqliteDatabase
from tests.api.conftest import Ledger, Seconds, app_over
from tests.browser.conftest import Reader
from tests.conformance.samples import SeededRandomness
from tests.support.sqlite import with_schema


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    database = SqliteDatabase(with_schema(tmp_path / "ledger.db"), Seconds(), SeededRandomness(1))
    yield Ledger(database)
    database.close()


def listed(page: Page) -> list[str]:
    found: list[str] = page.get_by_label("Period").evaluate("node => [...node.options].map(each => each.value)")
    return found


def days(newest: int, oldest: int) -> list[str]:
    return [f"2023-12-{day:02}/P1D" for day in range(newest, oldest - 1, -1)]


def test_pages_of_periods(reader: Reader, ledger: Ledger) -> None:
    sla_id = ledger.agreement(1)
    for day in range(30):
        ledger.statement(sla_id, day)
    with TestClient(app_over(ledger), base_url="http://127.0.0.1") as client:

        def answer(route: Route) -> None:
            """The application itself answers, over a ledger with a month of days."""
            asked = urlsplit(route.request.url)
            found = client.get(f"{asked.path}?{asked.query}")
            route.fulfill(status=found.status_code, content_type="application/json", body=found.content)

        reader.context.route("**/v1/embed/summary?*", answer)
        page = reader.harness(**{"sla-id": sla_id})
        reader.settled()
        earlier, later = (page.get_by_role("button", name=name, exact=True) for name in ("Earlier", "Later"))
        where = page.locator(".head .turn")
        expect(where).to_contain_text("Periods 1 to 12 of 30, newest first")
        expect(later).to_have_attribute("aria-disabled", "true")
        assert listed(page) == days(30, 19)

        earlier.focus()
        page.keyboard.press("Enter")
        expect(where).to_contain_text("Periods 13 to 24 of 30")
        expect(earlier).to_be_focused()
        assert listed(page) == days(18, 7)
        expect(page.get_by_label("Period")).to_have_value("2023-12-18/P1D")
        expect(page.locator(".credits")).to_contain_text("Periods 13 to 24 of 30, newest first")

        # What was chosen, and the page it is on, stay when it is renewed, also when another day is settled meanwhile.
        page.get_by_label("Period").select_option("2023-12-07/P1D")
        ledger.statement(sla_id, 30)
        page.locator("sla-dashboard").evaluate("node => node.refresh()")
        expect(where).to_contain_text("Periods 14 to 25 of 31")
        assert listed(page) == days(18, 7)
        expect(page.get_by_label("Period")).to_have_value("2023-12-07/P1D")

        earlier.press("Enter")
        expect(where).to_contain_text("Periods 26 to 31 of 31")
        assert listed(page) == days(6, 1)
        # At the end nothing is asked, and the focus stays.
        expect(earlier).to_have_attribute("aria-disabled", "true")
        earlier.press("Enter")
        expect(earlier).to_be_focused()
        later.press("Enter")
        expect(where).to_contain_text("Periods 14 to 25 of 31")
        later.press("Enter")
        expect(where).to_contain_text("Periods 1 to 12 of 31")
        assert listed(page) == days(31, 20)

        # The oldest of a page that newer ones push off it is still the one that is shown.
        page.get_by_label("Period").select_option("2023-12-20/P1D")
        ledger.statement(sla_id, 31)
        page.locator("sla-dashboard").evaluate("node => node.refresh()")
        expect(where).to_contain_text("Periods 1 to 12 of 32")
        expect(page.get_by_label("Period")).to_have_value("2023-12-20/P1D")
