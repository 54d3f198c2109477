"""`<sla-dashboard>` in a real Chromium: what it shows, to whom, and what it leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from ledger.cli.main import main
from tests.browser.conftest import HOSTILE, Gate, MakeReader, Reader, Served, awaited

pytestmark = pytest.mark.slow

FIRST_DAY = "2023-06-14/P1D"
CELLS = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent).join('|'))"


def held_in(held: list[Route]) -> Callable[[Route], None]:
    """A handler that keeps requests waiting. Playwright asks for a function of Python's own."""

    def hold(route: Route) -> None:
        held.append(route)

    return hold


def choose_first_day(page: Page) -> None:
    page.get_by_label("Period").select_option(FIRST_DAY)
    expect(page.locator("sla-dashboard .pill").first).to_have_text("2 of 3 objectives missed")


def test_the_figures_are_those_of_the_ledger(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    expect(page.get_by_role("heading", name="example-chat")).to_be_visible()
    # The newest day is shown first, and nothing was missed in it.
    expect(page.locator("sla-dashboard .pill").first).to_have_text("All objectives met")
    expect(page.locator(".violations")).to_contain_text("No violation in this period.")
    choose_first_day(page)
    cards = page.locator(".objectives .card")
    assert cards.locator(".figure").all_text_contents() == ["97.1052%", "91.5989%", "100.00%"]
    expect(cards.first).to_contain_text("738 of 760 requests")
    expect(cards.first).to_contain_text("Target 99.95%")
    expect(cards.nth(1)).to_contain_text("P95 within 800 ms")
    expect(page.locator(".uptime .bar")).to_have_count(24)
    expect(page.locator(".uptime .bar.missed")).to_have_count(3)
    expect(page.locator(".latency .plot")).to_have_count(2)
    expect(page.locator(".violations summary")).to_have_count(2)
    expect(page.locator(".total")).to_have_text("Credited over all periods: $2,000.00")
    expect(page.locator(".credits .row").nth(1)).to_contain_text("$2,000.00")
    expect(page.locator(".credits .row").nth(1)).to_contain_text("Confirmed")


def test_metagraphed_1796_what_is_not_all_is_not_drawn_as_100_percent(reader: Reader, gate: Gate) -> None:
    def rewrite(summary: dict[str, Any]) -> dict[str, Any]:
        summary["objectives"][0] |= {"attainment_percent": "99.99996", "state": "met"}
        summary["bars"][0]["cells"]["availability"] |= {"attainment_percent": "99.99996"}
        return summary

    gate.rewrite = rewrite
    page = reader.harness()
    reader.settled()
    expect(page.locator(".objectives .card .figure").first).to_have_text("99.9999%")
    page.locator(".uptime summary").click()
    expect(page.locator(".uptime tbody tr").first.locator("td").last).to_have_text("99.9999%")


def test_counts_are_said_in_their_own_unit(make_reader: MakeReader) -> None:
    def rewrite(summary: dict[str, Any]) -> dict[str, Any]:
        minutes, refusals, quick = summary["objectives"]
        minutes |= {"good": 1430, "valid": 1440, "unit": "minutes"}
        refusals |= {
            "indicator": "controlled_refusal",
            "id": "refusal",
            "threshold_ms": None,
            "quantile": None,
            "good": 90,
            "valid": 100,
            "undecided": 6,
            "unit": "questions",
            "state": "insufficient_data",
            "window_unit": "questions",
        }
        quick |= {"quantile": None, "good": 5, "valid": 7, "unit": "rounds"}
        summary["bars"][0]["cells"]["refusal"] = {
            "good": 1,
            "bad": 0,
            "undecided": 2,
            "attainment_percent": "33.3333",
            "verdict": "undecided",
        }
        return summary

    for locale, said in (
        ("en-US", ("1,430 of 1,440 minutes", "90 of 100 questions, 6 of them undecided", "5 of 7 rounds")),
        ("de-DE", ("1.430 von 1.440 Minuten", "90 von 100 Fragen, 6 davon unentschieden", "5 von 7 rounds")),
        ("zh-CN", ("1,430 / 1,440 分钟合格", "90 / 100 个问题合格，其中 6 未定", "5 / 7 rounds合格")),
    ):
        reader = make_reader()
        Gate(rewrite=rewrite).stand(reader)
        page = reader.harness(locale=locale)
        reader.settled()
        cards = page.locator(".objectives .card")
        for at, text in enumerate(said):
            expect(cards.nth(at)).to_contain_text(text)
        chart = page.locator("[data-chart=refusal]")
        if locale == "en-US":
            expect(page.locator("sla-dashboard .pill").first).to_have_text("Not enough for a verdict")
            expect(cards.nth(1)).to_contain_text("Not enough for a verdict")
            expect(page.locator(".latency h3")).to_have_text("Shares against targets")
            expect(cards.nth(2)).to_contain_text("within 3,200 ms")
            assert "undecided · 1 of 3 questions, 2 of them undecided" in str(chart.get_attribute("aria-valuetext"))


def test_a_violation_and_its_credit_line(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    choose_first_day(page)
    violation = page.locator(".violations .row").nth(1)
    violation.locator("summary").click()
    facts = violation.locator("dd").all_text_contents()
    assert facts == ["3", "22 of 120 requests", "Nothing was recorded beside the counts.", "$2,000.00"]
    settled = page.locator(".credits .row").nth(1)
    settled.locator("summary").click()
    lines = [row.split("|") for row in settled.locator(".lines tbody tr").evaluate_all(CELLS)]
    assert [line[1:] for line in lines] == [["issued", "$2,000.00"], ["issued", "$0.00"]]
    assert [line[0].partition(" · ")[0] for line in lines] == ["Availability", "Time to first token"]


STANDING = {
    "standing": "draft",
    "accepts_until": {"rfc3339": "2023-07-15T00:00:00Z", "ns": "1689379200000000000"},
    "version": 2,
}
RESTATED = {
    "restates": "83c7fef99436.2023-06-14.v1",
    "reason": "late facts were recorded",
    "credit_difference": {"currency": "USD", "minor_units": "-50000", "amount": "-500.00"},
    "proof": "final",
    "published": ["0x" + "ad" * 32],
}


@pytest.mark.parametrize(
    ("locale", "until", "difference", "step"),
    [
        ("en-US", "Draft: facts about the period are taken until Jul 15, 2023", "-$500.00", "(step 4 of 4)"),
        ("de-DE", "Entwurf: Bis 15.07.2023", "-500,00\xa0$", "(Schritt 4 von 4)"),
        ("zh-CN", "草稿：2023年7月15日", "-US$500.00", "（第 4 步，共 4 步）"),
    ],
)
def test_a_statement_says_where_it_stands_and_its_proof_how_far_it_came(
    make_reader: MakeReader, locale: str, until: str, difference: str, step: str
) -> None:
    def rewrite(summary: dict[str, Any]) -> dict[str, Any]:
        summary["shown"] |= STANDING
        first, second = summary["statements"]
        summary["statements"] = [first | STANDING | RESTATED, second | {"standing": "final", "proof": "anchored"}]
        return summary

    reader = make_reader()
    Gate(rewrite=rewrite).stand(reader)
    page = reader.harness(locale=locale)
    reader.settled()
    expect(page.locator(".head .standing")).to_contain_text(until)
    draft, final = page.locator(".credits .row").all()
    draft.locator("summary").click()
    facts = " ".join(draft.locator("dd").all_text_contents())
    for said in (until, "83c7fef99436.2023-06-14.v1: late facts were recorded", difference, "0x" + "ad" * 32):
        assert said in facts.replace("83c7fef99436.2023-06-14.v1：", "83c7fef99436.2023-06-14.v1: ")
    for row, done in ((draft, 4), (final, 2)):
        expect(row.locator(".proof circle.done")).to_have_count(done)
        expect(row.locator(".proof circle.due")).to_have_count(4 - done)
    assert step in (draft.locator(".proof").text_content() or "")
    expect(draft.locator("span.standing.draft")).to_be_visible()
    expect(final.locator("span.standing.final")).to_be_visible()
    if locale == "en-US":
        # What is drawn is said, too, to who does not see it.
        tree = draft.locator("summary").aria_snapshot()
        for said in ("Draft · Version 2", "Final on chain", "(step 4 of 4)"):
            assert said in tree


def test_what_must_be_claimed_is_said_with_its_deadline(reader: Reader, gate: Gate) -> None:
    def rewrite(summary: dict[str, Any]) -> dict[str, Any]:
        claim = {"objective": "availability", "violation_id": None, "deadline": STANDING["accepts_until"]}
        amount = {"currency": "USD", "minor_units": "80000", "amount": "800.00"}
        later = claim | {"deadline": {"rfc3339": "2023-08-01T00:00:00Z", "ns": "1690848000000000000"}}
        claims = [(later, "c-1", "open"), (claim, "c-2", "open"), (claim, "c-3", "filed"), (claim, "c-4", "too_late")]
        rows = [each | {"claim_id": name, "credit": amount, "status": state} for each, name, state in claims]
        return summary | {"claims": rows}

    gate.rewrite = rewrite
    page = reader.harness()
    reader.settled()
    expect(page.locator(".remark.claims")).to_contain_text("the first by Jul 15, 2023, 12:00 AM: $800.00 + $800.00")
    page.locator(".credits .row").first.locator("summary").click()
    rows = page.locator(".lines.claims tbody tr").evaluate_all(CELLS)
    states = [row.split("|")[1] for row in rows]
    assert states == ["open until Aug 1, 2023, 12:00 AM", "open until Jul 15, 2023, 12:00 AM", "filed", "too late"]


def test_an_agreement_that_settles_by_itself_asks_for_no_claim(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    page.locator(".credits .row").first.locator("summary").click()
    assert page.locator(".claims").count() == 0


def test_lists_that_are_cut_say_so(reader: Reader, gate: Gate) -> None:
    def rewrite(summary: dict[str, Any]) -> dict[str, Any]:
        if not summary["credit_lines"]:
            return summary
        taken = summary["credit_lines"][0] | {"reverses": "x", "status": "void", "id": "y"}
        changed = summary["credit_lines"][0] | {"restates": "83c7fef99436.2023-06-14.v1", "id": "z"}
        lines = [*summary["credit_lines"], taken, changed]
        return summary | {"violation_count": 1234, "credit_lines": lines, "credit_line_count": 400}

    gate.rewrite = rewrite
    page = reader.harness()
    reader.settled()
    page.get_by_label("Period").select_option(FIRST_DAY)
    expect(page.locator(".violations")).to_contain_text("The newest 2 of 1,234 violations.")
    row = page.locator(".credits .row").nth(1)
    row.locator("summary").click()
    expect(row).to_contain_text("The first 4 of 400 lines.")
    expect(row.locator(".lines tr").last).to_contain_text("Changed: Availability · Jun 14, 2023, 9:00 AM")
    expect(row.locator(".lines tr.void")).to_contain_text("Taken back: Availability")


def test_money_beyond_a_float_is_spelt_exactly(reader: Reader, gate: Gate) -> None:
    def rewrite(summary: dict[str, Any]) -> dict[str, Any]:
        total = {"currency": "USD", "minor_units": "1844674407370955161", "amount": "18446744073709551.61"}
        return summary | {"credit_totals": [total]}

    gate.rewrite = rewrite
    page = reader.harness()
    expect(page.locator(".total")).to_have_text("Credited over all periods: $18,446,744,073,709,551.61")


def test_the_bundle_is_handed_over_and_verifies(reader: Reader, tmp_path: Path) -> None:
    page = reader.harness()
    reader.settled()
    row = page.locator(".credits .row").nth(1)
    row.locator("summary").click()
    expect(row).to_contain_text("sla-ledger verify")
    with page.expect_download() as download:
        row.get_by_role("button", name="Download the bundle").click()
    bundle = tmp_path / download.value.suggested_filename
    download.value.save_as(bundle)
    trust = reader.served.data / "trust.json"
    # The trust file is the one of the last demo; the pins of log, chain and circuit are the same for all.
    assert main(["verify", str(bundle), "--trust", str(trust), "--accept-dev"]) == 0


def test_a_period_without_verdict_shows_no_zero(reader: Reader) -> None:
    page = reader.harness(**{"sla-id": reader.served.hostile})
    reader.settled()
    expect(page.locator("sla-dashboard .pill").first).to_have_text("No verdict")
    expect(page.locator(".remark")).to_contain_text("Too few windows were observed")
    expect(page.locator(".uptime .bar.no_data")).to_have_count(22)
    settled = page.locator(".credits")
    expect(settled).to_contain_text("No verdict, no credit")
    expect(settled).to_contain_text("Not proved")
    assert "$" not in (settled.text_content() or "")


def test_names_are_texts_whatever_they_hold(reader: Reader) -> None:
    page = reader.harness(**{"sla-id": reader.served.hostile})
    reader.settled()
    assert page.locator("sla-dashboard h2").text_content() == HOSTILE
    assert page.locator("sla-dashboard img, sla-dashboard script").count() == 0
    reader.open("/dashboard")
    expect(page.locator("nav a")).to_have_count(2)
    assert HOSTILE in page.locator("nav strong").all_text_contents()
    assert page.locator("nav img").count() == 0
    assert page.evaluate("() => window.pwned") is None


def test_a_viewer_sees_that_something_is_withheld(reader: Reader, served: Served) -> None:
    token = served.guest(served.sample)
    page = reader.harness(**{"token-required": ""})
    page.locator("sla-dashboard").evaluate("(node, token) => { node.token = token; }", token)
    reader.settled()
    choose_first_day(page)
    expect(page.locator(".credits .row").nth(1)).to_contain_text("Not visible with your access")
    expect(page.locator(".objectives .card").first).to_contain_text("Target: Not visible with your access")
    expect(page.locator(".objectives .figure").first).to_have_text("97.1052%")
    shown = page.locator("sla-dashboard").evaluate("node => node.shadowRoot.textContent")
    for secret in ("$", "99.95", "800 ms", "Credited", "Error budget"):
        assert secret not in shown
    assert page.locator(".target, .tick, .bar.missed").count() == 0
    # The server refuses what is not offered, too.
    for path in ("/v1/credits", "/v1/bundles/83c7fef99436.2023-06-14.v1"):
        answer = page.request.get(served.url + path, headers={"Authorization": f"Bearer {token}"})
        assert answer.status == 403


def test_a_guest_of_one_agreement_is_shown_no_other(reader: Reader, served: Served) -> None:
    reader.allow("404 (Not Found)")
    page = reader.harness(**{"token-required": "", "sla-id": served.hostile})
    page.locator("sla-dashboard").evaluate("(node, token) => { node.token = token; }", served.guest(served.sample))
    expect(page.get_by_role("heading", name="No such agreement")).to_be_visible()


@pytest.mark.parametrize(
    ("locale", "figure", "total", "heading", "day"),
    [
        ("de-DE", "97,1052\xa0%", "2.000,00\xa0$", "Ziele", "14.06.2023"),
        ("fr-FR", "97,1052\u202f%", "2\u202f000,00\xa0$US", "Objectives", "14 juin 2023"),
        ("zh-CN", "97.1052%", "US$2,000.00", "目标", "2023年6月14日"),
    ],
)
def test_locale(reader: Reader, locale: str, figure: str, total: str, heading: str, day: str) -> None:
    page = reader.harness(locale=locale)
    reader.settled()
    page.locator("select").select_option(FIRST_DAY)
    expect(page.locator(".figure").first).to_have_text(figure)
    assert total in (page.locator(".total").text_content() or "")
    expect(page.locator("#heading-objectives")).to_have_text(heading)
    assert day in page.locator("select option").all_text_contents()
    assert page.locator("sla-dashboard .frame").get_attribute("lang") == locale


def test_a_locale_that_is_none_is_passed_over(make_reader: MakeReader) -> None:
    reader = make_reader(locale="de-DE")
    page = reader.harness(locale="not a locale")
    reader.settled()
    expect(page.locator("#heading-objectives")).to_have_text("Ziele")


def test_locale_can_change_in_place(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    page.locator("sla-dashboard").evaluate("node => node.setAttribute('locale', 'de')")
    expect(page.locator("#heading-objectives")).to_have_text("Ziele")


def background(page: Page, selector: str) -> int:
    """Brightness 0..255 of an element's background."""
    colour = page.locator(selector).evaluate("node => getComputedStyle(node).backgroundColor")
    return int(colour.removeprefix("rgb(").split(",")[0])


@pytest.mark.parametrize(
    ("theme", "scheme", "dark"),
    [("light", "dark", False), ("dark", "light", True), ("auto", "dark", True), ("auto", "light", False)],
)
def test_the_theme_holds_before_the_first_script(make_reader: MakeReader, theme: str, scheme: str, dark: bool) -> None:
    reader = make_reader(color_scheme=scheme)
    held: list[Route] = []
    reader.context.route("**/embed/embed-page.js", held_in(held))
    page = reader.page
    page.goto(f"{reader.served.url}/embed?sla_id={reader.served.sample}&theme={theme}", wait_until="commit")
    page.locator("sla-dashboard").wait_for(state="attached")
    page.wait_for_function("() => document.styleSheets.length === 1")
    assert (background(page, "html") < 60) is dark
    held[0].continue_()
    page.locator("sla-dashboard .frame").wait_for()
    assert (background(page, "sla-dashboard") < 60) is dark


def test_colours_are_the_pages_to_choose(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    page.locator("sla-dashboard").evaluate("node => node.style.setProperty('--sla-good', 'rgb(1, 2, 3)')")
    colour = page.locator(".bar.clean").first.evaluate("node => getComputedStyle(node).fill")
    assert colour == "rgb(1, 2, 3)"


def test_keyboard(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    choose_first_day(page)
    chart = page.get_by_role("slider").first
    assert "promise broken: 3" in (chart.get_attribute("aria-label") or "")
    chart.focus()
    page.keyboard.press("Home")
    expect(chart).to_have_attribute("aria-valuenow", "1")
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    expect(chart).to_have_attribute("aria-valuenow", "10")
    said = chart.get_attribute("aria-valuetext") or ""
    assert "promise broken" in said
    assert "requests" in said
    expect(page.locator(".uptime .readout")).to_have_text(said)
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    expect(chart).to_have_attribute("aria-valuenow", "24")
    row = page.locator(".violations summary").first
    row.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".violations details").first).to_have_attribute("open", "")


def test_every_control_is_reached_by_tab_and_has_a_name(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    choose_first_day(page)
    reached = set()
    page.locator("body").evaluate("node => { node.tabIndex = -1; node.focus(); }")
    for _ in range(40):
        page.keyboard.press("Tab")
        key = page.evaluate(
            "() => document.querySelector('sla-dashboard').shadowRoot.activeElement?.dataset.key ?? null"
        )
        if key is None and reached:
            break
        reached.add(key)
    wanted = page.locator("sla-dashboard").evaluate(
        """node => [...node.shadowRoot.querySelectorAll("button, select, summary, [tabindex='0']")]
             .filter(each => each.checkVisibility()).map(each => each.dataset.key)"""
    )
    assert None not in wanted
    assert set(wanted) <= reached
    for role in ("button", "combobox", "slider"):
        for control in page.get_by_role(role).all():  # type: ignore[arg-type]
            name = control.get_attribute("aria-label") or control.text_content() or ""
            assert name.strip()


def test_the_table_says_what_the_bars_show(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    choose_first_day(page)
    page.locator(".uptime details.table summary").click()
    rows = page.locator(".uptime tbody tr")
    expect(rows).to_have_count(24)
    assert sum("promise broken" in text for text in rows.all_text_contents()) == 3


def test_narrow_and_still(make_reader: MakeReader) -> None:
    reader = make_reader(viewport={"width": 320, "height": 800}, reduced_motion="reduce")
    held: list[Route] = []
    reader.context.route("**/v1/embed/summary*", held_in(held))
    page = reader.harness(locale="de")
    ghost = page.locator(".ghost").first
    ghost.wait_for()
    assert ghost.evaluate("node => getComputedStyle(node).animationName") == "none"
    held[0].continue_()
    reader.settled()
    page.locator(".credits summary").first.click()
    assert page.evaluate("() => document.scrollingElement.scrollWidth") <= 320


# --- time, tokens and failures ---------------------------------------------------------------------


def opened_and_scrolled(page: Page) -> None:
    """What a reader did: opened a violation and a table, and scrolled in it and in the page."""
    page.locator(".violations summary").first.click()
    page.locator(".uptime details.table summary").click()
    page.locator(".uptime .scroll").evaluate("node => node.scrollTo(0, 120)")
    page.evaluate("() => window.scrollTo(0, 300)")
    page.get_by_role("slider").first.focus()


def assert_as_left(page: Page, scrolled_to: int) -> None:
    assert page.locator(".violations details").first.evaluate("node => node.open")
    assert page.locator(".uptime .scroll").evaluate("node => node.scrollTop") == 120
    assert page.evaluate("() => window.scrollY") == scrolled_to
    focused = page.evaluate("() => document.querySelector('sla-dashboard').shadowRoot.activeElement?.dataset.key")
    assert focused == "strip-availability"


def test_renewal_keeps_what_the_reader_did(reader: Reader, gate: Gate) -> None:
    gate.valid = "first"
    page = reader.page
    page.add_init_script(
        """addEventListener("sla-token-needed", (event) => {
             (window.asked ??= []).push(event.detail.slaId);
             event.target.token = window.next ?? "first";
           });"""
    )
    page = reader.harness()
    reader.settled()
    choose_first_day(page)
    opened_and_scrolled(page)
    scrolled_to = page.evaluate("() => window.scrollY")
    page.evaluate("() => { window.node = document.querySelector('sla-dashboard'); window.next = 'second'; }")
    gate.valid = "second"

    # The next answer also says something new in the sections that were touched.
    def rewrite(summary: dict[str, Any]) -> dict[str, Any]:
        at = summary["violations"][0]["opened"]
        summary["violations"][0]["evidence"] = [{"kind": "gpu_sample", "at": at, "summary": "gpu memory 99 %"}]
        summary["bars"][0]["excluded_requests"] = 7
        return summary

    gate.rewrite = rewrite
    page.evaluate("() => window.node.refresh()")
    expect(page.locator(".violations")).to_contain_text("gpu memory 99 %")
    assert gate.seen[-2:] == ["first", "second"]
    assert_as_left(page, scrolled_to)
    assert page.evaluate("() => window.node === document.querySelector('sla-dashboard')")
    assert page.evaluate("() => window.asked.every((id) => id === window.node.getAttribute('sla-id'))")
    # No token in an address, an attribute or anything that can be read back.
    assert not any("first" in url or "second" in url for url in gate.urls)
    assert "second" not in page.evaluate("() => window.node.outerHTML + window.node.shadowRoot.innerHTML")
    assert page.evaluate("() => window.node.token") is None


def test_the_period_chosen_stays_when_it_is_renewed(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    choose_first_day(page)
    page.locator("sla-dashboard").evaluate("node => node.refresh()")
    expect(page.get_by_label("Period")).to_have_value(FIRST_DAY)


def test_a_provider_is_asked_and_its_token_used(reader: Reader, gate: Gate) -> None:
    gate.valid = "given"
    held: list[Route] = []
    reader.context.route("**/embed/sla-dashboard.js", held_in(held))
    page = reader.harness(wait_until="commit")
    page.locator("sla-dashboard").wait_for(state="attached")
    page.evaluate(
        """() => {
             document.querySelector("sla-dashboard").tokenProvider = async ({ slaId }) => {
               window.askedFor = slaId;
               return "given";
             };
           }"""
    )
    awaited(page, lambda: bool(held))
    held[0].continue_()
    reader.settled()
    # Set before the module ran, so nothing was asked without it.
    assert set(gate.seen) == {"given"}
    assert page.evaluate("() => window.askedFor") == reader.served.sample


def test_an_expired_token_takes_the_figures_away(reader: Reader, gate: Gate) -> None:
    page = reader.page
    page.clock.install()
    reader.harness()
    reader.settled()
    # Five seconds may pass by themselves before a busy machine has looked.
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    gate.valid = "nobody has this one"
    page.locator("sla-dashboard").evaluate("node => { node.refresh(); }")
    # For a moment the figures stay, so that a page that answers leaves no trace.
    expect(page.locator(".foot .status")).to_have_text("Renewing access")
    expect(page.locator(".card")).to_have_count(3)
    page.clock.fast_forward(6000)
    expect(page.get_by_role("heading", name="Please sign in again")).to_be_visible()
    text = page.locator("sla-dashboard").evaluate("node => node.shadowRoot.textContent")
    assert "97.1" not in text
    assert "$" not in text
    # A token later brings them back.
    gate.valid = "late"
    page.locator("sla-dashboard").evaluate("node => { node.token = 'late'; }")
    reader.settled()


def test_a_page_that_gives_bad_tokens_is_not_asked_for_ever(reader: Reader, gate: Gate) -> None:
    gate.valid = "good"
    reader.page.add_init_script("""addEventListener("sla-token-needed", (event) => { event.target.token = "bad"; });""")
    page = reader.harness()
    expect(page.get_by_role("heading", name="Please sign in again")).to_be_visible()
    page.wait_for_timeout(300)
    assert gate.seen == ["", "bad"]


def test_the_server_itself_refuses_a_forged_token(reader: Reader) -> None:
    reader.allow("401 (Unauthorized)")
    page = reader.harness()
    reader.settled()
    page.locator("sla-dashboard").evaluate(
        "node => { node.tokenProvider = async () => 'eyJhbGciOiJub25lIn0.e30.'; node.token = 'x.y.z'; node.refresh(); }"
    )
    expect(page.get_by_role("heading", name="Please sign in again")).to_be_visible()


@pytest.mark.parametrize(
    ("status", "heading"),
    [(403, "No access"), (404, "No such agreement"), (503, "The figures could not be fetched")],
)
def test_failures_are_said(reader: Reader, status: int, heading: str) -> None:
    reader.allow(f"status of {status}")

    def refuse(route: Route) -> None:
        route.fulfill(status=status, content_type="application/problem+json", body="{}")

    pattern = f"{reader.served.url}/v1/embed/summary*"
    reader.context.route(pattern, refuse)
    page = reader.harness()
    expect(page.get_by_role("heading", name=heading)).to_be_visible()
    if status == 503:
        reader.context.unroute(pattern)
        page.get_by_role("button", name="Try again").click()
        reader.settled()


def test_figures_stay_while_the_service_fails(reader: Reader) -> None:
    reader.allow("ERR_FAILED")
    page = reader.harness()
    reader.settled()
    reader.context.route(f"{reader.served.url}/v1/embed/summary*", lambda route: route.abort())
    page.locator("sla-dashboard").evaluate("node => node.refresh()")
    expect(page.locator(".foot .status")).to_contain_text("Not renewed since")
    expect(page.locator(".card")).to_have_count(3)


def test_it_renews_itself(reader: Reader, gate: Gate) -> None:
    reader.page.clock.install()
    reader.harness(refresh="30")
    reader.settled()
    before = len(gate.seen)
    reader.page.clock.fast_forward(31_000)
    awaited(reader.page, lambda: len(gate.seen) > before)
    assert len(gate.seen) == before + 1


@pytest.mark.parametrize("moment", ["resting", "asking", "waiting for a token", "failing"])
def test_unmounted_it_leaves_nothing_running(reader: Reader, gate: Gate, moment: str) -> None:
    page = reader.harness(refresh="60")
    reader.settled()
    running = "() => [__watch.timers.size, __watch.listeners.size, __watch.fetches.size]"
    held: list[Route] = []
    pattern = f"{reader.served.url}/v1/embed/summary*"
    if moment == "asking":
        reader.context.route(pattern, held_in(held))
    elif moment == "waiting for a token":
        gate.valid = "nobody has this one"
    elif moment == "failing":
        reader.allow("ERR_FAILED")
        reader.context.route(pattern, lambda route: route.abort())
    if moment != "resting":
        page.locator("sla-dashboard").evaluate("node => { node.refresh(); }")
        wait = {
            "asking": "() => __watch.fetches.size === 1",
            "waiting for a token": "() => __watch.timers.size === 1 && __watch.fetches.size === 0",
            "failing": "() => __watch.timers.size === 1 && __watch.fetches.size === 0",
        }
        page.wait_for_function(wait[moment])
    timers, listeners, fetches = page.evaluate(running)
    assert timers + fetches == 1
    assert listeners == 1
    page.evaluate("() => { window.gone = document.querySelector('sla-dashboard'); gone.remove(); }")
    page.wait_for_function("() => __watch.fetches.size === 0")
    assert page.evaluate(running) == [0, 0, 0]
    # Put back, it goes on where it was.
    reader.context.unroute(pattern)
    gate.valid = None
    page.evaluate("() => { document.body.append(gone); }")
    page.wait_for_function("() => __watch.fetches.size === 0 && __watch.timers.size === 1")
    assert page.evaluate(running) == [1, 1, 0]
    reader.settled()


def test_ten_on_a_page_and_none_left(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    page.evaluate(
        """() => {
             const first = document.querySelector("sla-dashboard");
             for (let n = 0; n < 9; n += 1) document.body.append(first.cloneNode());
             document.body.replaceChildren();
           }"""
    )
    page.wait_for_function("() => __watch.fetches.size === 0")
    assert page.evaluate("() => [__watch.timers.size, __watch.listeners.size]") == [0, 0]


def test_nothing_of_an_answer_is_kept_in_the_browser(reader: Reader) -> None:
    page = reader.harness()
    reader.settled()
    kept = page.evaluate("() => JSON.stringify([localStorage.length, sessionStorage.length, document.cookie])")
    assert json.loads(kept) == [0, 0, ""]
