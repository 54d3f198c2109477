"""The framed page and the operator's page in a real Chromium."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Gate, MakeReader, Reader, awaited

pytestmark = pytest.mark.slow

_PORTAL = """<!doctype html><meta charset=utf-8><title>portal</title>
<iframe id="figures" src="{src}" width="900" height="300"></iframe>{more}
<script>
  window.heard = [];
  window.addEventListener("message", (event) => {{
    window.heard.push({{ ...event.data, origin: event.origin }});
    if (window.token && event.data.type === "sla-dashboard:token-needed") {{
      event.source.postMessage({{ type: "sla-dashboard:token", token: window.token }}, event.origin);
    }}
    if (event.data.type === "sla-dashboard:height") {{
      document.getElementById("figures").height = event.data.height;
    }}
  }});
</script>"""


def portal(reader: Reader, more: str = "", origin: str | None = None) -> Any:
    """Open the page that frames the dashboard; the frame."""
    served = reader.served
    src = f"{served.url}/embed?sla_id={served.sample}&amp;locale=en"
    served.pages["/"] = _PORTAL.format(src=src, more=more)
    reader.page.goto(origin or served.portal)
    return reader.page.frame_locator("#figures")


def test_a_framed_page_asks_for_its_token_and_tells_its_height(reader: Reader, gate: Gate) -> None:
    gate.valid = "guest"
    reader.page.add_init_script("window.token = 'guest';")
    frame = portal(reader)
    frame.locator(".card").first.wait_for()
    assert set(gate.seen) == {"guest"}
    heard = reader.page.evaluate("() => window.heard")
    assert {message["origin"] for message in heard} == {reader.served.url}
    (asked,) = [message for message in heard if message["type"] == "sla-dashboard:token-needed"]
    assert asked["slaId"] == reader.served.sample
    reader.page.wait_for_function("() => Number(document.getElementById('figures').height) > 600")
    height = frame.locator("html").evaluate("node => node.scrollHeight - node.clientHeight")
    assert height == 0
    # A token in an address would be in logs and histories.
    assert not any("guest" in url for url in gate.urls)
    assert not any("guest" in each.url for each in reader.page.frames)


def test_a_real_guest_token_in_a_frame(reader: Reader) -> None:
    served = reader.served
    scopes = ["sla:read:agreements", "sla:read:uptime", "sla:read:credits", "sla:read:thresholds"]
    token = served.guest(served.sample, *scopes)
    reader.page.add_init_script(f"window.token = {token!r};")
    frame = portal(reader)
    expect(frame.locator(".total")).to_have_text("Credited over all periods: $2,000.00")
    expect(frame.locator(".objectives .card").first).to_contain_text("Target 99.95%")
    # Latency, violations and proofs were not given.
    expect(frame.locator(".latency .hidden").first).to_be_visible()
    expect(frame.locator(".violations")).to_contain_text("Not visible with your access")
    expect(frame.locator(".credits .row").first).to_contain_text("Not visible with your access")


def test_silent_renewal_in_a_frame(reader: Reader, gate: Gate) -> None:
    gate.valid = "guest"
    reader.page.add_init_script("window.token = 'guest';")
    frame = portal(reader)
    frame.locator(".credits summary").first.click()
    gate.valid = "guest 2"
    reader.page.evaluate("() => { window.token = 'guest 2'; }")
    frame.get_by_role("button", name="Refresh").click()
    expect(frame.locator(".foot .status")).to_have_text("")
    awaited(reader.page, lambda: gate.seen[-1] == "guest 2")
    expect(frame.locator(".credits details").first).to_have_attribute("open", "")


def test_a_message_of_another_page_is_ignored(reader: Reader, gate: Gate) -> None:
    """A frame beside it, of an origin that may frame nothing, posts tokens as fast as it can."""
    gate.valid = "stolen"
    served = reader.served
    served.pages["/beside"] = """<!doctype html><script>
      window.posted = 0;
      setInterval(() => {
        window.posted += 1;
        parent.frames[0].postMessage({ type: "sla-dashboard:token", token: "stolen" }, "*");
      }, 20);</script>"""
    frame = portal(reader, more=f'<iframe id="beside" src="{served.stranger}/beside"></iframe>')
    expect(frame.get_by_role("heading", name="Please sign in again")).to_be_visible()
    beside = next(each for each in reader.page.frames if each.url.endswith("/beside"))
    beside.wait_for_function("() => window.posted > 20")
    assert gate.seen == []
    # The framing page may, and what it posts must have the right shape.
    for bad in ("'stolen'", "null", "{type: 'sla-dashboard:token', token: 5}", "{type: 'token', token: 'stolen'}"):
        reader.page.evaluate(f"() => frames[0].postMessage({bad}, '*')")
    reader.page.wait_for_timeout(200)
    assert gate.seen == []
    reader.page.evaluate("() => frames[0].postMessage({type: 'sla-dashboard:token', token: 'stolen'}, '*')")
    frame.locator(".card").first.wait_for()
    assert set(gate.seen) == {"stolen"}


def test_another_origin_cannot_frame_it(reader: Reader, gate: Gate) -> None:
    reader.allow("frame-ancestors")
    reader.allow("Framing")
    reader.page.add_init_script("window.token = 'guest';")
    portal(reader, origin=reader.served.stranger)
    reader.page.wait_for_timeout(500)
    assert gate.seen == []
    assert reader.page.evaluate("() => window.heard") == []


def test_the_operators_page_lists_agreements(reader: Reader) -> None:
    page = reader.open("/dashboard?theme=light")
    expect(page.locator("nav a")).to_have_count(2)
    page.locator("nav a", has_text="example-chat").click()
    expect(page.get_by_role("heading", level=2)).to_have_text("example-chat")
    assert page.url.endswith(f"#{reader.served.sample}")
    expect(page.locator("nav a[aria-current]")).to_contain_text("example-chat")
    # Only one dashboard at a time, and the one before left nothing behind.
    page.locator(".card").first.wait_for()
    page.wait_for_function("() => __watch.fetches.size === 0 && __watch.timers.size === 1")


def test_the_operators_page_asks_for_a_token_where_one_is_needed(reader: Reader, gate: Gate) -> None:
    gate.valid = "operator"
    page = reader.open("/dashboard")
    page.get_by_label("Access token").fill("operator")
    page.get_by_role("button", name="Use it").click()
    page.locator(".card").first.wait_for()
    assert "operator" not in page.url
    assert page.locator("input").input_value() == ""


def test_the_operators_page_cannot_be_framed(make_reader: MakeReader) -> None:
    reader = make_reader()
    reader.allow("frame-ancestors")
    reader.allow("Framing")
    served = reader.served
    served.pages["/frame"] = (
        f'<!doctype html><title>x</title><iframe id="figures" src="{served.url}/dashboard"></iframe>'
    )
    reader.page.goto(f"{served.portal}/frame")
    reader.page.wait_for_timeout(300)
    assert reader.page.frame_locator("#figures").locator("nav").count() == 0
