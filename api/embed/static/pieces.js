// What the sections are made of: panels, pills, terms with their values.

import { title } from "./charts.js";
import { el, svg } from "./dom.js";
import { fill } from "./messages.js";

const ICONS = {
  met: "M3 8.5l3.2 3.2L13 4.8",
  breached: "M4 4l8 8M12 4l-8 8",
  none: "M4 8h8",
  lock: "M4.5 7.5h7v5h-7zM6 7.5V5.6a2 2 0 0 1 4 0v1.9",
};

/** What may not be seen: said in words, with a lock. */
export function hidden(texts, what) {
  return el("span", { class: "hidden" }, icon("lock"), what ? `${fill(what, { target: "" }).trim()}: ${texts.hidden}` : texts.hidden);
}

export function pill(state, text) {
  const kind = state === "met" || state === "breached" ? state : "none";
  return el("span", { class: `pill ${kind}` }, icon(kind), text);
}

function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

export function panel(key, heading, ...body) {
  const id = `heading-${key}`;
  return el("section", { class: `panel ${key}`, "aria-labelledby": id }, el("h3", { id }, heading), ...body);
}

export const titles = (summary, texts) => new Map(summary.objectives.map((each) => [each.id, title(each, texts)]));

export const fact = (name, value) => [el("dt", {}, name), el("dd", {}, value)];

/** Which of all periods are listed, counted from the newest. */
export function periodsListed({ statements, statements_before: before, statement_count: all }, texts, format) {
  const [from, to] = [before + 1, before + statements.length];
  return fill(texts.periodsListed, { from: format.count(from), to: format.count(to), all: format.count(all) });
}

/** That a list is not the whole, where it is not. */
export function rest(text, shown, all, format) {
  if (shown >= all) return null;
  return el("p", { class: "muted" }, fill(text, { shown: format.count(shown), all: format.count(all) }));
}
