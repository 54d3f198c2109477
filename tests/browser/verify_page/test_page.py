"""The page as people use it: files go in, lines come out, and nothing leaves; whoever made the files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from ledger.attest.proving.node_toolchain import NodeToolchain
from ledger.attest.verify_page import assembly
from ledger.domain.record.canonical import canonical_bytes
from tests.browser.conftest import HOSTILE
from tests.browser.verify_page.conftest import Checker, opened
from tests.support import examples

pytestmark = pytest.mark.slow

FILES = {"bundle": "bundle", "trust": "trust", "opening": "opening"}
HOLDS = "It holds, against your pins"


@pytest.fixture
def reader(chromium: Browser, page_file: Path) -> Iterator[Callable[..., Checker]]:
    found: list[Checker] = []

    def make(**options: Any) -> Checker:
        checker = opened(chromium, page_file, **options)
        found.append(checker)
        return checker

    yield make
    for checker in found:
        checker.context.close()
        checker.check()


def give(page: Page, **files: Path) -> None:
    for kind, path in files.items():
        page.get_by_label(kind.capitalize() if kind != "trust" else "Trust file", exact=True).set_input_files(path)


def vector(name: str) -> Path:
    return examples.VECTORS / f"{name}.json"


def headline(page: Page) -> Any:
    return page.locator("#headline")


def test_a_reader_checks_a_bundle_against_pins_and_an_opening(reader: Callable[..., Checker]) -> None:
    page = reader().page
    give(page, bundle=vector("bundle"))
    expect(headline(page)).to_have_text("Consistent, but not settled")
    expect(page.get_by_role("status")).to_contain_text("resting on dev key, pin: log, pin: issuer, ")
    give(page, trust=vector("trust"), opening=vector("opening"))
    page.get_by_role("checkbox", name="Accept a development key").check()
    expect(headline(page)).to_have_text(HOLDS)
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="the Groth16 proof holds for these six signals")).to_contain_text("PASS")
    expect(rows.filter(has_text="24 opened windows give the sealed root")).to_contain_text("PASS")
    expect(rows.filter(has_text="dev key")).to_contain_text("ASSUMED")
    expect(page.get_by_role("term").filter(has_text="Credit")).to_be_visible()
    expect(page.locator("#facts")).to_contain_text("2000.00 USD")
    expect(page.locator("#unknown")).to_contain_text("that the collector told the truth")
    expect(page.get_by_role("progressbar")).to_be_hidden()


def test_files_are_dropped_and_told_apart_by_what_they_say(reader: Callable[..., Checker]) -> None:
    page = reader().page
    drop(page, {name: vector(name).read_text() for name in ("opening_withheld", "trust", "bundle_withheld")})
    expect(headline(page)).to_have_text(HOLDS)
    expect(page.locator("#name-trust")).to_have_text("trust.json")
    page.get_by_role("button", name="Forget the files").click()
    expect(page.locator("#result")).to_be_hidden()
    expect(page.locator("#name-trust")).to_have_text("none yet")


def drop(page: Page, files: dict[str, str]) -> None:
    page.evaluate(
        """(files) => {
          const transfer = new DataTransfer();
          for (const [name, text] of Object.entries(files)) transfer.items.add(new File([text], `${name}.json`));
          const options = { dataTransfer: transfer, bubbles: true, cancelable: true };
          document.body.dispatchEvent(new DragEvent("drop", options));
        }""",
        files,
    )


def test_a_lie_is_called_one(reader: Callable[..., Checker], tmp_path: Path) -> None:
    page = reader().page
    forged = examples.forger()
    forged.issued["credit"]["minor_units"] = "1"
    (tmp_path / "forged.json").write_bytes(forged.sign())
    give(page, trust=vector("trust"), bundle=tmp_path / "forged.json")
    expect(headline(page)).to_have_text("It does not hold")
    expect(page.get_by_role("status")).to_contain_text("log inclusion, verdict")
    expect(page.locator("#facts-title")).to_have_text("What the file claims (it does not hold)")


def test_what_files_say_is_text_and_nothing_else(reader: Callable[..., Checker], tmp_path: Path) -> None:
    page = reader().page
    forged = examples.forger("bundle_withheld")
    forged.bundle["agreement"]["service"]["name"] = HOSTILE
    forged.bundle["agreement"]["parties"]["issuer"]["name"] = HOSTILE
    forged.agree()
    (tmp_path / "hostile.json").write_bytes(forged.sign())
    give(page, bundle=tmp_path / "hostile.json")
    expect(headline(page)).to_have_text("It does not hold")
    expect(page.locator("#facts")).to_contain_text(HOSTILE)
    unknown = canonical_bytes(dict(examples.bundle()) | {HOSTILE: HOSTILE})
    drop(page, {HOSTILE.replace("/", "_"): unknown.decode()})
    expect(headline(page)).to_have_text("This cannot be checked")
    expect(page.get_by_role("status")).to_contain_text("unknown key")
    assert page.evaluate("() => [window.pwned, document.images.length]") == [None, 0]


def test_what_is_too_large_is_not_read(reader: Callable[..., Checker], tmp_path: Path) -> None:
    page = reader().page
    for kind, size in (("bundle", 100_000_000), ("trust", 65_537), ("opening", 5_000_000)):
        path = tmp_path / f"{kind}.json"
        with path.open("wb") as stream:
            stream.truncate(size)
        give(page, **{kind: path})
        expect(headline(page)).to_have_text("This cannot be checked")
        expect(page.get_by_role("status")).to_contain_text(f"the file has {size} bytes")
    (tmp_path / "deep.json").write_text("[" * 4_000_000)
    page.get_by_role("button", name="Forget the files").click()
    give(page, bundle=tmp_path / "deep.json")
    expect(headline(page)).to_have_text("This cannot be checked")
    expect(page.get_by_role("status")).to_contain_text("nested deeper than 64 levels")


def test_a_reader_without_a_mouse_and_with_a_phone(reader: Callable[..., Checker]) -> None:
    for scheme in ("light", "dark"):
        page = reader(viewport={"width": 360, "height": 740}, color_scheme=scheme).page
        drop(page, {name: vector(name).read_text() for name in ("trust", "bundle")})
        expect(headline(page)).to_have_text("Consistent, but not settled")
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        for name in ("file-bundle", "file-trust", "file-opening", "accept-dev"):
            page.keyboard.press("Tab")
            assert page.evaluate("() => document.activeElement.id") == name
        page.keyboard.press("Space")
        expect(headline(page)).to_have_text(HOLDS)
        for part in (
            "#headline",
            "#conclusion",
            ".pass .outcome",
            ".open .outcome",
            ".detail",
            "#unknown li",
            "footer p",
        ):
            assert contrast(page, part) >= 4.5, (scheme, part)


def contrast(page: Page, selector: str) -> float:
    """WCAG's ratio between a text and what is behind it."""
    found: float = page.evaluate(
        """(selector) => {
          const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
          const luminance = (colour) => {
            paint.clearRect(0, 0, 1, 1);
            paint.fillStyle = colour;
            paint.fillRect(0, 0, 1, 1);
            const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map((part) => {
              const value = part / 255;
              return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const node = document.querySelector(selector);
          let behind = node;
          const clear = (each) => getComputedStyle(each).backgroundColor === "rgba(0, 0, 0, 0)";
          while (clear(behind) && behind.parentElement) behind = behind.parentElement;
          const [one, other] = [getComputedStyle(node).color, getComputedStyle(behind).backgroundColor].map(luminance);
          return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        }""",
        selector,
    )
    return found


def test_its_policy_lets_nothing_out(reader: Callable[..., Checker]) -> None:
    checker = reader()
    tried = checker.page.evaluate(
        """async () => {
          const refused = [];
          addEventListener("securitypolicyviolation", (event) => refused.push(event.violatedDirective));
          await fetch("https://example.com/").catch(() => {});
          const script = document.createElement("script");
          try { script.text = "window.injected = 1"; } catch { refused.push("trusted types"); }
          document.body.append(script);
          await new Promise((resolve) => setTimeout(resolve, 200));
          return { refused, injected: window.injected ?? null };
        }"""
    )
    assert tried["injected"] is None
    assert {"connect-src", "trusted types"} <= set(tried["refused"])
    # What the browser says of these two attempts.
    checker.complaints.clear()
    assert checker.requests == [checker.page.url]


def test_equal_inputs_give_equal_bytes(assembled: assembly.Page, toolchain: NodeToolchain) -> None:
    again = assembly.assemble(NodeToolchain(toolchain.modules))
    assert again == assembled
    text = assembled.html.decode()
    assert str(Path.cwd()) not in text
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\'' in text
    assert re.search(r"(src|href)=", re.sub(r"(?s)<script.*?</script>", "", text)) is None
    assert json.loads(re.search(r'(?s)id="tables">(.*?)</script>', text)[1])["tzdata"] == assembled.tzdata  # type: ignore[index]
