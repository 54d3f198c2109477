"""The examples of docs/dashboard.md work as they are copied."""

from __future__ import annotations

import re
import textwrap

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ROOT, Reader, Served

pytestmark = pytest.mark.slow


def examples(served: Served) -> list[str]:
    """The HTML of the page, with this test's addresses in place of the ones it names."""
    text = (ROOT / "docs" / "dashboard.md").read_text()
    blocks = [textwrap.dedent(block) for block in re.findall(r"^ *```html\n(.*?)^ *```$", text, re.S | re.M)]
    return [block.replace("https://sla.example", served.url).replace("SLA_ID", served.sample) for block in blocks]


def test_the_frame(reader: Reader) -> None:
    served = reader.served
    framed, _ = examples(served)
    served.pages["/copied"] = f"<!doctype html><title>portal</title>{framed}"
    served.pages["/sla-token"] = lambda: served.guest(served.sample)
    reader.page.goto(f"{served.portal}/copied")
    frame = reader.page.frame_locator("#sla")
    expect(frame.get_by_role("heading", level=2)).to_have_text("example-chat")
    reader.page.wait_for_function("() => Number(document.getElementById('sla').height) > 600")


def test_the_element(reader: Reader) -> None:
    """In a page of another origin than the ledger's."""
    served = reader.served
    _, element = examples(served)
    served.pages["/element"] = f"<!doctype html><title>page</title>{element}"
    served.pages["/sla-token"] = lambda: served.guest(served.sample)
    reader.page.goto(f"{served.portal}/element")
    reader.settled()
    # A token of the page of another origin opens nothing here.
    reader.allow("CORS policy")
    reader.allow("ERR_FAILED")
    reader.allow("403 (Forbidden)")
    reader.page.goto(f"{served.stranger}/element")
    expect(reader.page.locator("sla-dashboard .notice")).to_be_visible()
    assert reader.page.locator("sla-dashboard .card").count() == 0


def test_a_frame_that_asked_too_early_is_told_again(reader: Reader) -> None:
    served = reader.served
    src = f"{served.url}/embed?sla_id={served.sample}&amp;locale=en"
    served.pages["/late"] = f'<!doctype html><title>portal</title><iframe id="sla" src="{src}"></iframe>'
    page = reader.page
    page.goto(f"{served.portal}/late")
    frame = page.frame_locator("#sla")
    expect(frame.get_by_role("heading", name="Please sign in again")).to_be_attached()
    page.evaluate(
        """([origin, token]) => {
             const frame = document.getElementById("sla").contentWindow;
             addEventListener("message", (event) => {
               if (event.data.type !== "sla-dashboard:token-needed") return;
               frame.postMessage({ type: "sla-dashboard:token", token }, origin);
             });
             frame.postMessage({ type: "sla-dashboard:hello" }, origin);
           }""",
        [served.url, served.guest(served.sample)],
    )
    expect(frame.get_by_role("heading", level=2)).to_have_text("example-chat")
