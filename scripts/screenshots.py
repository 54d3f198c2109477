"""Pictures for the README, of a real server over a demo's data directory, in the Chromium of this machine.

    make demo
    .venv/bin/python scripts/screenshots.py var/demo

writes docs/images/*.png; the verification page needs the packages of toolchain/. The server listens on a free port and
stops at the end.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from ledger.attest.proving.node_toolchain import NodeToolchain
from ledger.attest.verify_page.assembly import assemble

ROOT = Path(__file__).resolve().parents[1]
VECTORS = ROOT / "tests" / "vectors"
IMAGES = ROOT / "docs" / "images"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
MAX_BYTES = 250_000


@dataclass(frozen=True)
class Picture:
    """One file: how wide, how high (0: the whole page), in which colours and language."""

    name: str
    width: int
    height: int
    query: str
    open_row: str


PICTURES = (
    Picture("dashboard.png", 1000, 0, "theme=light&locale=en-US", ".credits .row > summary"),
    Picture("dashboard-dark-narrow.png", 400, 900, "theme=dark&locale=de-DE", ".violations .row > summary"),
)


def main(arguments: list[str]) -> int:
    """Exit code 0, or 2 where something is missing."""
    chromium = shutil.which("chromium")
    if len(arguments) != 1 or not Path(arguments[0], "data.json").is_file() or chromium is None:
        sys.stderr.write(
            "usage: screenshots.py DATA_DIRECTORY (as `make demo` writes it); needs the program chromium\n"
        )
        return 2
    IMAGES.mkdir(parents=True, exist_ok=True)
    with _serving(Path(arguments[0])) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for picture in PICTURES:
            path = _take(browser, url, picture)
            if not _fits(path):
                return 2
        fits = _fits(_take_verify_page(browser))
        browser.close()
    return 0 if fits else 2


def _fits(path: Path) -> bool:
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}  {size / 1000:.0f} kB")
    if size > MAX_BYTES:
        sys.stderr.write(f"{path} is larger than {MAX_BYTES // 1000} kB\n")
    return size <= MAX_BYTES


def _take_verify_page(browser: Browser) -> Path:
    """The page that verifies, from disk, after it checked the example bundle."""
    with tempfile.TemporaryDirectory() as scratch:
        html = Path(scratch) / "verify.html"
        html.write_bytes(assemble(NodeToolchain()).html)
        page = browser.new_page(viewport={"width": 900, "height": 1150}, color_scheme="light")
        page.goto(html.as_uri())
        page.get_by_label("Accept a development key").check()
        for label, name in (("Trust file", "trust"), ("Opening", "opening"), ("Bundle", "bundle")):
            page.get_by_label(label, exact=True).set_input_files(VECTORS / f"{name}.json")
        page.locator(".verdict.code-0").wait_for()
        path = IMAGES / "verify-page.png"
        page.screenshot(path=path)
        page.close()
    return path


def _take(browser: Browser, url: str, picture: Picture) -> Path:
    viewport = {"width": picture.width, "height": picture.height or 800}
    page = browser.new_page(viewport=viewport, reduced_motion="reduce")
    agreement = page.request.get(f"{url}/v1/agreements").json()["items"][0]
    page.goto(f"{url}/embed?sla_id={agreement['sla_id']}&{picture.query}")
    page.locator("sla-dashboard .objectives .card").first.wait_for()
    page.locator(picture.open_row).first.click()
    page.mouse.move(0, 0)
    path = IMAGES / picture.name
    page.screenshot(path=path, full_page=picture.height == 0)
    page.close()
    return path


@contextmanager
def _serving(data: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "ledger.cli.main", "up", "--data", str(data), "--port", "0", "--json"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise SystemExit("the server did not start; the lines above say why")
        yield str(json.loads(line)["url"])
    finally:
        process.terminate()
        process.wait(timeout=30)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
