// The operator's page: a list of agreements and the dashboard of the chosen one. It asks as the dashboard does, without
// a token on a server that lets this machine in, else with one that is typed in and kept in this page alone.

import { el } from "./dom.js";
import "./sla-dashboard.js";

const PAGE = 100;
const theme = document.documentElement.dataset.theme;
const list = el("ul", { id: "agreements" });
const state = el("p", { role: "status" }, "Loading agreements");
const main = el("main", { tabindex: "-1" });
const secret = el("input", { type: "password", name: "token", autocomplete: "off", required: true, "aria-label": "Access token" });
const form = el("form", { hidden: true }, el("label", {}, "Access token ", secret), el("button", {}, "Use it"));
const nav = el("nav", { "aria-label": "Agreements" }, el("h1", {}, "sla-ledger"), state, form, list);

let token = null;

async function agreements() {
  const found = [];
  let cursor = null;
  do {
    const query = new URLSearchParams({ limit: String(PAGE), ...(cursor === null ? {} : { cursor }) });
    const response = await fetch(`/v1/agreements?${query}`, {
      headers: token === null ? {} : { Authorization: `Bearer ${token}` },
      credentials: "omit",
    });
    if (!response.ok) throw Object.assign(new Error(String(response.status)), { status: response.status });
    const page = await response.json();
    found.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return found;
}

async function load() {
  try {
    const found = await agreements();
    form.hidden = true;
    state.textContent = found.length ? "" : "There is no agreement yet. Make one with: sla-ledger demo --out DIR";
    list.replaceChildren(...found.map(entry));
    choose(found);
    window.onhashchange = () => choose(found);
  } catch (error) {
    form.hidden = error.status !== 401;
    state.textContent = error.status === 401 ? "This server asks for an access token." : "The agreements could not be fetched.";
  }
}

function entry(agreement) {
  return el(
    "li",
    {},
    el(
      "a",
      { href: `#${agreement.sla_id}` },
      el("strong", {}, agreement.service),
      el("span", {}, agreement.customer),
      el("code", {}, `${agreement.sla_id.slice(0, 14)}…`),
    ),
  );
}

function choose(found) {
  const chosen = found.find((each) => each.sla_id === location.hash.slice(1)) ?? found[0];
  if (!chosen) return;
  document.title = `${chosen.service} · sla-ledger`;
  for (const link of list.querySelectorAll("a")) {
    if (link.hash.slice(1) === chosen.sla_id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const lang = new URLSearchParams(location.search).get("locale");
  const dashboard = el("sla-dashboard", { src: "", "sla-id": chosen.sla_id, theme, locale: lang });
  if (token !== null) dashboard.tokenProvider = async () => token;
  main.replaceChildren(dashboard);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  token = secret.value;
  secret.value = "";
  load();
});

document.body.append(nav, main);
load();
