// <sla-dashboard>: the state, windows, violations and credits of one agreement.
//
//   <script type="module" src="/embed/sla-dashboard.js"></script>
//   <sla-dashboard src="" sla-id="0x..." locale="de-AT" theme="auto" refresh="60"></sla-dashboard>
//
// Attributes: src (base address of the API, without a slash at its end), sla-id, locale (BCP 47), theme (light, dark,
// auto), refresh (seconds between renewals, 0: never), token-required (wait for a token before the first request).
// Properties: token (write-only), tokenProvider (async function that gives one; it gets {slaId, signal}).
// Events: sla-token-needed (a token is wanted: set `token`), sla-updated (figures are shown; detail.slaId).
//
// While it is in no page it has no timer, no listener outside itself and no request under way.

import { point } from "./charts.js";
import { el, swap } from "./dom.js";
import { Format, usableLocale } from "./format.js";
import { fill, messagesOf } from "./messages.js";
import { styles } from "./styles.js";
import { notice, sectionsOf, skeleton } from "./view.js";

const REFRESH_S = 60;
const LEAST_REFRESH_S = 5;
const MOST_REFRESH_S = 86400;
const RETRY_S = 15;
/** How long figures stay while a new token is waited for. Then they are taken away. */
const RENEWAL_GRACE_MS = 5000;
const MAX_TOKEN_LENGTH = 8192;

class SlaDashboard extends HTMLElement {
  static observedAttributes = ["src", "sla-id", "locale", "refresh"];

  #token = null;
  #provider = null;
  #period = null;
  #pages = []; // cursors of the pages of periods up to the one listed; none: the newest
  #life = null; // AbortController of the time in a page
  #request = null; // AbortController of the request under way
  #timer = 0;
  #answer = null; // text of the last good answer, to see whether a new one says anything new
  #summary = null;
  #fetchedAt = 0;
  #asked = false; // the page was asked for a token and nothing was answered with it yet
  #status = "";
  #notice = null; // what stands in place of the figures
  #drawn = new Map(); // section -> {material, node}
  #frame;
  #body;
  #foot;

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [styles];
    this.#body = el("div", { class: "body" });
    this.#foot = el("footer", { class: "foot", hidden: true });
    this.#frame = el("div", { class: "frame", part: "frame" }, this.#body, this.#foot);
    root.append(this.#frame);
  }

  /** A bearer token. It is kept in this element alone: it cannot be read back, and stands in no attribute. */
  set token(value) {
    this.#token = typeof value === "string" && value !== "" && value.length <= MAX_TOKEN_LENGTH ? value : null;
    if (this.#life && (this.#notice !== null || this.#status !== "")) this.#load();
  }

  /** An async function that gives a token whenever one is needed. */
  set tokenProvider(value) {
    this.#provider = typeof value === "function" ? value : null;
    if (this.#life && this.#notice?.kind === "signin") this.#load();
  }

  /** Fetch anew, now. Resolves when the outcome is shown. */
  refresh() {
    return this.#life ? this.#load() : Promise.resolve();
  }

  connectedCallback() {
    // Set before this module was loaded, these are plain properties that hide the setters.
    for (const name of ["token", "tokenProvider"]) {
      if (Object.hasOwn(this, name)) {
        const value = this[name];
        delete this[name];
        this[name] = value;
      }
    }
    this.#life = new AbortController();
    const { signal } = this.#life;
    const root = this.shadowRoot;
    root.addEventListener("click", (event) => this.#clicked(event), { signal });
    root.addEventListener("change", (event) => this.#changed(event), { signal });
    root.addEventListener("keydown", (event) => this.#typed(event), { signal });
    root.addEventListener("pointermove", (event) => this.#pointed(event), { signal });
    document.addEventListener("visibilitychange", () => this.#seen(), { signal });
    this.#render();
    // A module that imports this one listens and sets properties only when this one has run.
    queueMicrotask(() => {
      if (!signal.aborted) this.#load();
    });
  }

  disconnectedCallback() {
    this.#life?.abort();
    this.#life = null;
    this.#request?.abort();
    this.#request = null;
    this.#stopTimer();
  }

  attributeChangedCallback(name, before, after) {
    if (before === after || !this.#life) return;
    if (name === "src" || name === "sla-id") {
      this.#forget();
      [this.#period, this.#pages] = [null, []];
      this.#render();
      this.#load();
    } else if (name === "locale") {
      this.#render();
    } else {
      this.#schedule(this.#refreshSeconds());
    }
  }

  get #slaId() {
    return this.getAttribute("sla-id") ?? "";
  }

  // --- fetching --------------------------------------------------------------------------------

  async #load() {
    this.#stopTimer();
    this.#request?.abort();
    const request = new AbortController();
    this.#request = request;
    const { signal } = request;
    let wait = RETRY_S;
    try {
      if (this.#token === null && (this.#provider !== null || this.hasAttribute("token-required"))) {
        if (!(await this.#renew(signal))) return undefined;
      }
      let response = await this.#ask(this.#summaryPath(), signal);
      if (response.status === 401) {
        this.#token = null;
        // A page that answers with tokens that are no good would be asked for ever.
        if (this.#asked) return this.#signedOut();
        if (!(await this.#renew(signal))) return undefined;
        response = await this.#ask(this.#summaryPath(), signal);
      }
      wait = await this.#take(response, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      this.#failed();
    } finally {
      if (this.#request === request) this.#request = null;
    }
    if (!signal.aborted && wait !== null) this.#schedule(wait);
    return undefined;
  }

  #ask(path, signal) {
    const headers = this.#token === null ? {} : { Authorization: `Bearer ${this.#token}` };
    const src = (this.getAttribute("src") ?? "").replace(/\/$/, "");
    return fetch(src + path, { headers, signal, credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" });
  }

  #summaryPath() {
    const query = new URLSearchParams({ sla_id: this.#slaId });
    if (this.#period !== null) query.set("period", this.#period);
    if (this.#pages.length) query.set("cursor", this.#pages.at(-1));
    return `/v1/embed/summary?${query}`;
  }

  /** Show what an answer says; the seconds until the next question, or null for none. */
  async #take(response, signal) {
    if (response.ok) {
      const text = await response.text();
      const summary = JSON.parse(text);
      if (signal.aborted) return null;
      this.#fetchedAt = Date.now();
      this.#asked = false;
      this.#status = "";
      this.#notice = null;
      if (text !== this.#answer) [this.#answer, this.#summary] = [text, summary];
      this.#render();
      this.dispatchEvent(new CustomEvent("sla-updated", { bubbles: true, composed: true, detail: { slaId: this.#slaId } }));
      return this.#refreshSeconds();
    }
    const terminal = { 400: "absent", 401: "signin", 403: "forbidden", 404: "absent" }[response.status];
    if (terminal) {
      this.#forget();
      this.#notice = { kind: terminal };
      this.#render();
      return null;
    }
    this.#failed();
    const seconds = Number(response.headers.get("Retry-After"));
    return seconds > 0 ? Math.min(seconds, MOST_REFRESH_S) : RETRY_S;
  }

  /** Get a new token from the page. False: it comes later by the setter, or not at all. */
  async #renew(signal) {
    if (this.#provider !== null) {
      let token = null;
      try {
        token = await this.#provider({ slaId: this.#slaId, signal });
      } catch {
        // A page that cannot give a token is one whose reader must sign in.
      }
      if (signal.aborted) return false;
      this.#token = typeof token === "string" && token && token.length <= MAX_TOKEN_LENGTH ? token : null;
      if (this.#token !== null) return true;
      this.#signedOut();
      return false;
    }
    this.#status = "renewing";
    this.#asked = true;
    if (this.#summary === null) this.#notice = { kind: "signin" };
    this.#render();
    // A page that answers at once sets the token, which starts a new request and aborts this one.
    this.#announceNeed();
    if (!signal.aborted && this.#life) {
      this.#stopTimer();
      this.#timer = setTimeout(() => this.#signedOut(), RENEWAL_GRACE_MS);
    }
    return false;
  }

  #announceNeed() {
    this.dispatchEvent(new CustomEvent("sla-token-needed", { bubbles: true, composed: true, detail: { slaId: this.#slaId } }));
  }

  #signedOut() {
    this.#timer = 0;
    this.#asked = false;
    this.#forget();
    this.#notice = { kind: "signin" };
    this.#render();
  }

  #failed() {
    if (this.#summary === null) this.#notice = { kind: "error" };
    this.#status = "stale";
    this.#render();
  }

  /** Nothing that was shown under a right that has ended stays in the page or in memory. */
  #forget() {
    this.#answer = null;
    this.#summary = null;
    this.#status = "";
    this.#notice = null;
  }

  // --- time ------------------------------------------------------------------------------------

  #refreshSeconds() {
    const text = this.getAttribute("refresh");
    const seconds = text === null || !/^\d{1,6}$/.test(text) ? REFRESH_S : Number(text);
    return seconds === 0 ? null : Math.min(Math.max(seconds, LEAST_REFRESH_S), MOST_REFRESH_S);
  }

  #schedule(seconds) {
    this.#stopTimer();
    if (seconds === null || !this.#life || document.hidden) return;
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.#load();
    }, seconds * 1000);
  }

  #stopTimer() {
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  /** A page that nobody looks at asks for nothing; when it is looked at again, it asks at once. */
  #seen() {
    if (this.#request !== null || this.#notice?.kind === "signin") return;
    if (document.hidden) this.#stopTimer();
    else if (this.#refreshSeconds() !== null) this.#load();
  }

  // --- drawing ---------------------------------------------------------------------------------

  #context() {
    const locale = usableLocale(this.getAttribute("locale"), ...navigator.languages);
    const zone = this.#summary?.agreement.timezone ?? "UTC";
    return { summary: this.#summary, texts: messagesOf(locale), format: new Format(locale, zone), locale };
  }

  #render() {
    const context = this.#context();
    this.#frame.setAttribute("lang", context.locale);
    this.#frame.setAttribute("dir", new Intl.Locale(context.locale).textInfo?.direction ?? "ltr");
    if (this.#summary === null) this.#renderNotice(context);
    else this.#renderSections(context);
    this.#renderFoot(context);
  }

  #renderNotice({ texts }) {
    this.#drawn.clear();
    const kind = this.#notice?.kind;
    if (kind === undefined) this.#body.replaceChildren(skeleton(texts));
    else if (kind === "error") this.#body.replaceChildren(notice("error", texts.failed_, texts.failedWhy, texts.retry));
    else if (kind === "signin") this.#body.replaceChildren(notice("signin", texts.signIn, texts.signInWhy, texts.retry));
    else this.#body.replaceChildren(notice(kind, texts[kind], texts[`${kind}Why`], null));
  }

  /** Sections whose material is as it was stay as they are, with everything the reader did in them. */
  #renderSections(context) {
    if (this.#drawn.size === 0) this.#body.replaceChildren();
    for (const [key, parts, draw] of sectionsOf(context)) {
      const material = JSON.stringify([context.locale, context.format.timeZone, parts]);
      const before = this.#drawn.get(key);
      if (before?.material === material) continue;
      const node = draw();
      if (before) swap(before.node, node);
      else this.#body.append(node);
      this.#drawn.set(key, { material, node });
    }
  }

  #renderFoot({ texts, format, summary }) {
    this.#foot.hidden = summary === null;
    if (summary === null) return;
    if (!this.#foot.firstChild) {
      const status = el("span", { class: "status", role: "status" });
      const button = el("button", { type: "button", "data-action": "refresh", "data-key": "refresh" });
      this.#foot.append(el("p", {}, el("span", { class: "asof" }), el("span", { class: "zone" }), status), button);
    }
    const time = format.clock(this.#fetchedAt);
    const status = { stale: fill(texts.stale, { time }), renewing: texts.renewing }[this.#status] ?? "";
    const put = (selector, text) => {
      const node = this.#foot.querySelector(selector);
      if (node.textContent !== text) node.textContent = text;
    };
    put(".asof", fill(texts.updated, { time }));
    put(".zone", fill(texts.zone, { zone: summary.agreement.timezone }));
    put(".status", status);
    put("button", texts.refresh);
  }

  // --- what the reader does --------------------------------------------------------------------

  #clicked(event) {
    const button = event.target.closest("[data-action]");
    if (button?.dataset.action === "refresh") this.#load();
    else if (button?.dataset.action === "bundle") this.#download(button);
    else if (button?.dataset.action === "turn" && button.getAttribute("aria-disabled") !== "true") this.#turn(button);
  }

  /** To the page of periods before or behind the one listed; its newest one is shown. */
  #turn(button) {
    if (button.dataset.key === "earlier") this.#pages.push(this.#summary.next_cursor);
    else this.#pages.pop();
    this.#period = null;
    this.#load();
  }

  #changed(event) {
    if (event.target.dataset.action !== "period") return;
    const { summary } = this.#context();
    // The newest that is listed stays "the newest" when another one is settled.
    this.#period = event.target.value === summary.statements[0].period ? null : event.target.value;
    this.#load();
  }

  #typed(event) {
    const chart = event.target.closest("[data-chart]");
    if (!chart || event.altKey || event.ctrlKey || event.metaKey) return;
    const last = Number(chart.getAttribute("aria-valuemax"));
    const now = Number(chart.getAttribute("aria-valuenow"));
    const shown = !chart.querySelector(".cursor").hidden;
    const to = { ArrowRight: now + 1, ArrowUp: now + 1, ArrowLeft: now - 1, ArrowDown: now - 1, PageUp: now + 10, PageDown: now - 10, Home: 1, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    // The first key shows where the cursor is.
    this.#point(chart, (shown || event.key === "Home" || event.key === "End" ? to : now) - 1);
  }

  #pointed(event) {
    const chart = event.target.closest?.("[data-chart]");
    if (!chart) return;
    const { left, width } = chart.getBoundingClientRect();
    this.#point(chart, Math.floor(((event.clientX - left) / width) * Number(chart.getAttribute("aria-valuemax"))));
  }

  #point(chart, index) {
    const { summary, texts, format } = this.#context();
    const objective = summary.objectives.find((each) => each.id === chart.dataset.chart);
    point(chart.closest(".plot"), index, summary.bars, objective, format, texts);
  }

  /** A link could not carry the token, so the bundle is fetched and handed over as a file. */
  async #download(button) {
    const { texts } = this.#context();
    const outcome = button.parentNode.querySelector(".outcome");
    const { signal } = this.#life;
    outcome.textContent = "";
    try {
      const response = await this.#ask(button.dataset.bundle, signal);
      if (!response.ok) throw new Error(String(response.status));
      const file = URL.createObjectURL(await response.blob());
      el("a", { href: file, download: button.dataset.file }).click();
      URL.revokeObjectURL(file);
    } catch {
      if (!signal.aborted) outcome.textContent = texts.downloadFailed;
    }
  }
}

if (!customElements.get("sla-dashboard")) customElements.define("sla-dashboard", SlaDashboard);

export { SlaDashboard };
