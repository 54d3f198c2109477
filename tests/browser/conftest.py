"""A real server over settled data, a real Chromium, and a page of another origin that frames the dashboard."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, NoReturn

import httpx
import pytest
import yaml
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, Route, expect, sync_playwright

from ledger.app.agreements.registering import load_agreement
from ledger.app.facts.observations import record_observations
from ledger.cli.main import main
from ledger.domain.terms.period_names import period_named
from ledger.ingest.request_log import RequestLog
from ledger.wiring import open_data

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "agreement.yaml"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
HOSTILE = '<img src=x onerror="window.pwned=1"></script><script>window.pwned=1</script>'
WAIT_MS = 60_000
"""For what a page does at once, on a machine that has other things to do."""
expect.set_options(timeout=WAIT_MS)


@dataclass
class Served:
    """A running server. ``sample`` has two settled days, ``hostile`` one without a verdict, ``portal`` may frame it."""

    url: str
    data: Path
    sample: str
    hostile: str
    portal: str
    stranger: str
    pages: dict[str, str | Callable[[], str]]

    def guest(self, sla_id: str, *scopes: str) -> str:
        """A guest token as the server of the portal gets it, by default with a viewer's scopes."""
        asked = {"sla_ids": [sla_id], "ttl_s": 300, "origin": self.portal, "scopes": list(scopes) or None}
        answer = httpx.post(f"{self.url}/v1/embed/tokens", json=asked, timeout=60)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    def element(self, **attributes: str) -> str:
        """The markup of one element."""
        named = {"src": "", "sla-id": self.sample, "refresh": "0"} | attributes
        return "<sla-dashboard" + "".join(f' {name}="{value}"' for name, value in named.items()) + "></sla-dashboard>"


def _rows(service: str, day: str, count: int) -> bytes:
    row = {"service": service, "ttft_s": 0.2, "e2e_s": 1.5, "input_tokens": 10, "output_tokens": 20}
    rows = (
        {
            "request_id": f"{day}-{n}",
            "started_at": f"{day}T{n % 24:02}:10:00Z",
            **row,
            "error_code": None,
            "error_msg": "",
        }
        for n in range(count)
    )
    return b"".join(json.dumps(each).encode() + b"\n" for each in rows)


def _run(*arguments: str) -> None:
    assert main(list(arguments)) == 0, arguments


def _settle_next_day(data: Path) -> None:
    """A second, quiet day of the sample agreement."""
    services = open_data(data, notify=lambda _: None)
    try:
        with services.database.read() as tx:
            (agreement,) = tx.views.agreements()
        sla_id, attestor, now_ns = agreement["sla_id"], services.attestor, services.clock.now_ns()
        log = _rows("example-chat", "2023-06-15", 48)
        read_rows = lambda data: RequestLog(io.BytesIO(data), "batch")  # noqa: E731
        with services.database.begin() as tx:
            registered = load_agreement(tx, sla_id, attestor)
            period = period_named(registered.agreement, "2023-06-15/P1D")
            record_observations(
                tx, registered, log, read_rows=read_rows, declared_complete=period.interval, now_ns=now_ns
            )
        services.commands.close(sla_id, str(period))
        services.runner.run_until_idle(lambda _s: None)
        services.sign_log()
    finally:
        services.close()


def _settle(data: Path, folder: Path) -> tuple[str, str]:
    """The sample's day and the next one; then a day of another agreement, nearly all of whose windows are missing."""
    _run("demo", "--agreement", str(EXAMPLE), "--out", str(data), "--json")
    sample = yaml.safe_load((data / "agreement.yaml").read_text())
    _settle_next_day(data)
    terms = yaml.safe_load(EXAMPLE.read_text())
    terms["service"]["name"] = HOSTILE
    terms["parties"]["issuer"]["name"] = HOSTILE
    terms["effective"] = {name: str(day) for name, day in terms["effective"].items()}
    (folder / "hostile.yaml").write_text(yaml.safe_dump(terms))
    (folder / "hostile.ndjson").write_bytes(_rows(HOSTILE, "2023-06-14", 2))
    _run(
        *("demo", "--agreement", str(folder / "hostile.yaml"), "--requests", str(folder / "hostile.ndjson")),
        *("--span", "2023-06-14T00:00:00Z/2023-06-14T02:00:00Z", "--period", "2023-06-14/P1D"),
        *("--out", str(data), "--json"),
    )
    services = open_data(data, notify=lambda _: None)
    try:
        with services.database.read() as tx:
            ids = {row["document"]["service"]["name"]: row["sla_id"] for row in tx.views.agreements()}
    finally:
        services.close()
    return ids[sample["service"]["name"]], ids[HOSTILE]


class _Pages(BaseHTTPRequestHandler):
    def __init__(self, pages: dict[str, str | Callable[[], str]], *rest: Any) -> None:
        self._pages = pages
        super().__init__(*rest)

    def do_GET(self) -> None:
        found = self._pages.get(self.path)
        page = found() if callable(found) else found
        self.send_response(204 if page is None else 200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((page or "").encode())

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("dashboard")
    data = folder / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
        sample, hostile = _settle(data, folder)
    pages: dict[str, str | Callable[[], str]] = {}
    portal = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, pages))
    threading.Thread(target=portal.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{portal.server_port}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLA_LEDGER_")}
    environ = {**kept, "SLA_LEDGER_KEY_CACHE": str(key_cache), "SLA_LEDGER_EMBED_ANCESTORS": origin}
    process = subprocess.Popen(
        [sys.executable, "-m", "ledger.cli.main", "up", "--data", str(data), "--port", "0", "--json"],
        env=environ,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        # The same server by another name is another origin.
        stranger = f"http://localhost:{portal.server_port}"
        yield Served(line["url"], data, sample, hostile, origin, stranger, pages)
    finally:
        process.terminate()
        process.communicate(timeout=60)
        portal.shutdown()
        portal.server_close()


@pytest.fixture(scope="package")
def playwright(request: pytest.FixtureRequest) -> Iterator[Playwright]:
    """Of these tests alone: while it lives, its event loop counts as running, and nobody else can run one."""
    assert isinstance(request.node, pytest.Package), "without an __init__.py pytest keeps it for the whole session"
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def chromium(playwright: Playwright, absent: Callable[[str], NoReturn]) -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        absent("the program chromium")
    browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
    yield browser
    browser.close()


# Runs in every page before any script of it: what it leaves running, and what its policy refused.
_WATCH = """
(() => {
  const watch = { timers: new Set(), listeners: new Set(), fetches: new Set(), violations: [] };
  window.__watch = watch;
  document.addEventListener("securitypolicyviolation", (event) => {
    watch.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
  });
  const clocks = [["setTimeout", "clearTimeout", false], ["setInterval", "clearInterval", true]];
  for (const [start, stop, repeats] of clocks) {
    const [begin, end] = [window[start], window[stop]];
    window[start] = (run, ...rest) => {
      const id = begin((...given) => {
        if (!repeats) watch.timers.delete(id);
        run(...given);
      }, ...rest);
      watch.timers.add(id);
      return id;
    };
    window[stop] = (id) => {
      watch.timers.delete(id);
      end(id);
    };
  }
  const outside = [window, document];
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  EventTarget.prototype.addEventListener = function (type, listener, options) {
    // Of the dashboard alone: the driver listens, too.
    if ((outside.includes(this ?? window) || this instanceof MediaQueryList) && new Error().stack.includes("/embed/")) {
      const entry = { type, listener };
      watch.listeners.add(entry);
      options?.signal?.addEventListener("abort", () => watch.listeners.delete(entry));
    }
    return addEventListener.call(this ?? window, type, listener, options);
  };
  EventTarget.prototype.removeEventListener = function (type, listener, options) {
    for (const entry of watch.listeners) {
      if (entry.type === type && entry.listener === listener) watch.listeners.delete(entry);
    }
    return removeEventListener.call(this ?? window, type, listener, options);
  };
  const ask = window.fetch;
  window.fetch = async (...request) => {
    const entry = {};
    watch.fetches.add(entry);
    try {
      return await ask(...request);
    } finally {
      watch.fetches.delete(entry);
    }
  };
})();
"""


@dataclass
class Reader:
    """Someone who looks at pages. What the console said against it, or a policy refused, fails the test at its end."""

    served: Served
    context: BrowserContext
    page: Page
    complaints: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def allow(self, text: str) -> None:
        """The console may say this: the browser itself reports every failed request."""
        self.allowed.append(text)

    def open(self, path: str, *, wait_until: Literal["load", "commit"] = "load") -> Page:
        self.page.goto(self.served.url + path, wait_until=wait_until)
        return self.page

    def harness(self, *, wait_until: Literal["load", "commit"] = "load", **attributes: str) -> Page:
        """A page of the server's own origin around one element."""
        body = self.served.element(**attributes)
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            "require-trusted-types-for 'script'; trusted-types 'none'"
        )
        script = '<script type="module" src="/embed/sla-dashboard.js"></script>'
        document = (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>x</title>{script}<body>{body}</body></html>"
        )

        def answer(route: Route) -> None:
            headers = {"content-security-policy": policy}
            route.fulfill(status=200, content_type="text/html", headers=headers, body=document)

        self.context.route(f"{self.served.url}/harness", answer)
        return self.open("/harness", wait_until=wait_until)

    def settled(self) -> None:
        """Wait until figures are shown."""
        # The outline that stands there before has cards, too.
        self.page.locator("sla-dashboard .objectives .card").first.wait_for(timeout=WAIT_MS)

    def check(self) -> None:
        for frame in self.page.frames:
            if frame.url.startswith("http"):
                self.complaints += frame.evaluate("() => window.__watch ? window.__watch.violations : []")
        left = [text for text in self.complaints if not any(each in text for each in self.allowed)]
        assert left == []


MakeReader = Callable[..., Reader]


@pytest.fixture
def make_reader(chromium: Browser, served: Served) -> Iterator[MakeReader]:
    readers: list[Reader] = []

    def make(**options: Any) -> Reader:
        options = {"locale": "en-US", "viewport": {"width": 1000, "height": 900}} | options
        context = chromium.new_context(**options)
        context.add_init_script(_WATCH)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        reader = Reader(served, context, page)
        reader.listen(page)
        readers.append(reader)
        return reader

    yield make
    try:
        for reader in readers:
            reader.check()
    finally:
        for reader in readers:
            reader.context.close()


@pytest.fixture
def reader(make_reader: MakeReader) -> Reader:
    return make_reader()


def awaited(page: Page, done: Callable[[], bool]) -> None:
    """Let the browser go on until something is seen of it here."""
    give_up = time.monotonic() + WAIT_MS / 1000
    while not done():
        assert time.monotonic() < give_up, "it did not come about in time"
        page.wait_for_timeout(20)


@dataclass
class Gate:
    """Stands before the server's figures and lets one token pass, as the server does once it asks for tokens."""

    valid: str | None = None
    seen: list[str] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    rewrite: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def stand(self, reader: Reader) -> Gate:
        reader.context.route(f"{reader.served.url}/v1/**", self._answer)
        reader.allow("401 (Unauthorized)")
        return self

    def _answer(self, route: Route) -> None:
        headers = dict(route.request.headers)
        token = headers.pop("authorization", "").removeprefix("Bearer ")
        self.seen.append(token)
        self.urls.append(route.request.url)
        if self.valid is not None and token != self.valid:
            body = {"status": 401, "code": "unauthenticated", "title": "x", "detail": "x", "instance": "x", "data": {}}
            route.fulfill(status=401, content_type="application/problem+json", body=json.dumps(body))
            return
        headers = {name: value for name, value in headers.items() if name != "if-none-match"}
        if self.rewrite is None:
            route.continue_(headers=headers)
            return
        answer = route.fetch(headers=headers)
        route.fulfill(response=answer, json=self.rewrite(answer.json()))


@pytest.fixture
def gate(reader: Reader) -> Gate:
    return Gate().stand(reader)
