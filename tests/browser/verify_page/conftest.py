"""The assembled verification page, opened from disk in a browser that is offline, and what it is asked there."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from ledger.attest.proving.node_toolchain import NodeToolchain
from ledger.attest.verify_page import assembly
from tests.browser.conftest import WAIT_MS
from tests.support.node_packages import TOOLCHAIN, NodePackagesMissing, installed

MANY = 40
"""How many bundles are handed to the page at once: what is checked shows in between."""

_CHECK = """
async (cases) => {
  const { bytes } = slaLedger.modules;
  const read = (text) => (text === null ? null : bytes.fromBase64(text));
  const found = [];
  for (const { bundle, trust, opening, acceptDev } of cases) {
    const report = await slaLedger.checkFiles({
      bundle: read(bundle), trust: read(trust), opening: read(opening), acceptDev,
    });
    const { exitCode, lines, notEstablished, problem } = report;
    found.push({ exitCode, lines, notEstablished, problem: problem ?? null });
  }
  return found;
}
"""


@dataclass(frozen=True)
class Found:
    """The page's report: like that of ``ledger.attest.checks.verification``."""

    exit_code: int
    lines: list[tuple[str, str, str]]
    not_established: list[str]
    problem: str | None

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        return [(check, outcome) for check, outcome, _ in self.lines]

    @property
    def failed(self) -> set[str]:
        return {check for check, outcome, _ in self.lines if outcome == "FAIL"}


@dataclass(frozen=True)
class Given:
    """Files for one report."""

    bundle: bytes
    trust: bytes | None = None
    opening: bytes | None = None
    accept_dev: bool = True


@dataclass
class Checker:
    """The page in a browser. What it asked of any network, or the console said against it, fails the test."""

    context: BrowserContext
    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def report(self, given: Given) -> Found:
        return self.reports([given])[0]

    def reports(self, many: Sequence[Given]) -> list[Found]:
        """The page's own function, called for each in turn within one load of the page."""
        found: list[Found] = []
        for at in range(0, len(many), MANY):
            cases = [
                {
                    "bundle": b64encode(given.bundle).decode(),
                    "trust": None if given.trust is None else b64encode(given.trust).decode(),
                    "opening": None if given.opening is None else b64encode(given.opening).decode(),
                    "acceptDev": given.accept_dev,
                }
                for given in many[at : at + MANY]
            ]
            found += map(_found, self.page.evaluate(_CHECK, cases))
        return found

    def run(self, script: str, argument: Any = None) -> Any:
        """A function over ``slaLedger.modules``, called in the page."""
        return self.page.evaluate(f"(argument) => ({script})(slaLedger.modules, argument)", argument)

    def check(self) -> None:
        assert [url for url in self.requests if not url.startswith("file://")] == []
        assert self.complaints == []


def _found(said: dict[str, Any]) -> Found:
    lines = [(line["check"], line["outcome"], line["detail"]) for line in said["lines"]]
    return Found(said["exitCode"], lines, said["notEstablished"], said["problem"])


@pytest.fixture(scope="session")
def toolchain(absent: Callable[[str], NoReturn]) -> NodeToolchain:
    try:
        return NodeToolchain(installed(TOOLCHAIN))
    except NodePackagesMissing as error:
        absent(str(error))


@pytest.fixture(scope="session")
def assembled(toolchain: NodeToolchain) -> assembly.Page:
    return assembly.assemble(toolchain)


@pytest.fixture(scope="session")
def page_file(assembled: assembly.Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("verify-page") / "verify.html"
    path.write_bytes(assembled.html)
    return path


def opened(chromium: Browser, page_file: Path, **options: Any) -> Checker:
    """The page from disk, in a context without a network."""
    context = chromium.new_context(**{"offline": True, "locale": "en-US"} | options)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    checker = Checker(context, page)
    context.on("request", lambda request: checker.requests.append(request.url))
    page.on("console", lambda said: checker.complaints.append(said.text))
    page.on("pageerror", lambda error: checker.complaints.append(str(error)))
    page.goto(page_file.as_uri())
    return checker


@pytest.fixture(scope="module")
def checker(chromium: Browser, page_file: Path) -> Iterator[Checker]:
    """One load of the page for all tests of a module."""
    found = opened(chromium, page_file)
    yield found
    found.context.close()
    found.check()


def plain(values: Iterable[Any]) -> list[Any]:
    """Values as the page gets them."""
    found: list[Any] = json.loads(json.dumps(list(values)))
    return found
