// The summary as sections of the page. Each is a function of the answer alone; what may not be seen is said so, and
// never drawn as zero or as nothing.

import { counted, kindOf, kindText, shares, strip, title, unitText } from "./charts.js";
import { credits, standingHelp } from "./credits.js";
import { el, svg } from "./dom.js";
import { fill } from "./messages.js";
import { fact, hidden, panel, periodsListed, pill, rest, titles } from "./pieces.js";

/** The sections in order, as [key, what it is made from, how it is made]. A section whose material is as before stays. */
export function sectionsOf(context) {
  const { summary } = context;
  const material = [summary.objectives, summary.bars, summary.shown];
  return [
    ["head", [summary.agreement, summary.shown, summary.objectives, ...listed(summary)], () => head(context)],
    ["objectives", [summary.objectives, summary.shown], () => objectives(context)],
    ["uptime", material, () => charts(context, "uptime", isUptime, strip)],
    ["latency", material, () => charts(context, "latency", (each) => !isUptime(each), shares)],
    ["violations", [summary.violations, summary.violation_count, summary.shown, summary.objectives], () => violations(context)],
    ["credits", creditMaterial(summary), () => credits(context)],
  ];
}

const listed = ({ statements, statement_count: all, statements_before: before, next_cursor: next }) => [statements, all, before, next];

const creditMaterial = (summary) => [
  ...[...listed(summary), summary.credit_totals, summary.credit_lines, summary.credit_line_count],
  ...[summary.shown, summary.objectives, summary.claims],
];

/** A panel in place of figures: loading, sign-in, error. `action`: a button to try again. */
export function notice(kind, heading, text, action) {
  return el(
    "section",
    { class: `notice ${kind}`, role: kind === "error" ? "alert" : "status" },
    el("h3", {}, heading),
    el("p", {}, text),
    action ? el("button", { type: "button", "data-action": "refresh", "data-key": "retry" }, action) : null,
  );
}

/** What stands there until the first answer. */
export function skeleton(texts) {
  const block = (kind) => el("div", { class: `ghost ${kind}` });
  return el(
    "section",
    { class: "skeleton", role: "status", "aria-label": texts.loading },
    block("line"),
    el("div", { class: "cards" }, block("card"), block("card"), block("card")),
    block("chart"),
  );
}

function head({ summary, texts, format, element }) {
  const { agreement, shown } = summary;
  // One that was chosen may have been pushed off the page by newer ones.
  const apart = shown !== null && !summary.statements.some((each) => each.period === shown.period);
  const statements = apart ? [...summary.statements, shown] : summary.statements;
  const picker = el("select", { "data-action": "period", "data-key": "period", "aria-label": texts.period });
  for (const each of statements) {
    const selected = shown !== null && each.period === shown.period;
    picker.append(el("option", { value: each.period, selected }, format.period(each.start, each.end)));
  }
  const day = shown && el("p", { class: "when" }, format.period(shown.start, shown.end));
  return el(
    "header",
    { class: "head" },
    el(
      "div",
      { class: "who" },
      el("h2", { id: "name" }, agreement.service),
      el("p", { class: "muted" }, fill(texts.between, { issuer: agreement.issuer, customer: agreement.customer })),
    ),
    el(
      "div",
      { class: "now" },
      verdict(summary, texts, format),
      statements.length > 1 ? picker : day,
      turning(summary, texts, format),
      shown && el("p", { class: "when standing" }, standingHelp(shown, texts, format)),
    ),
    shown?.state === "withheld" ? el("p", { class: "remark" }, texts.withheldWhy) : null,
  );
}

/** The ways to the other periods, where not all are listed. At an end a button stays, so that the focus does. */
function turning(summary, texts, format) {
  if (summary.statements.length >= summary.statement_count) return null;
  const button = (key, there) => el("button", { type: "button", "data-action": "turn", "data-key": key, "aria-disabled": there ? null : "true" }, texts[key]);
  return el(
    "p",
    { class: "turn" },
    button("later", summary.statements_before > 0),
    el("span", { class: "muted" }, periodsListed(summary, texts, format)),
    button("earlier", summary.next_cursor !== null),
  );
}

function verdict({ shown, objectives: all }, texts, format) {
  if (shown === null) return pill("none", texts.unsettled);
  if (shown.state === "withheld") return pill("none", texts.noVerdict);
  const known = all.filter((each) => !each.withheld.includes("state"));
  const missed = known.filter((each) => each.state === "breached").length;
  if (missed) return pill("breached", fill(texts.someMissed, { n: format.count(missed), all: format.count(known.length) }));
  if (known.length < all.length) return known.length ? pill("none", texts.hidden) : hidden(texts);
  if (known.some((each) => each.state === "insufficient_data")) return pill("none", texts.insufficient_data);
  return known.some((each) => each.state === "met") ? pill("met", texts.allMet) : pill("none", texts.no_data);
}

function objectives({ summary, texts, format }) {
  const cards = summary.objectives.map((each) => {
    const unseen = (name) => each.withheld.includes(name);
    const state = unseen("state") ? null : pill(each.state ?? "none", texts[each.state ?? "unsettled"]);
    const figure = unseen("attainment_percent")
      ? hidden(texts)
      : each.attainment_percent === null ? "–" : format.percent(each.attainment_percent);
    return el(
      "li",
      { class: `card ${each.state ?? "none"}` },
      el("div", { class: "cardhead" }, el("h4", {}, title(each, texts)), state),
      el("p", { class: "figure" }, figure),
      meter(each),
      el(
        "ul",
        { class: "facts" },
        el("li", {}, unseen("target_percent") ? hidden(texts, texts.target) : promise(each, texts, format)),
        unseen("good") ? null : el("li", {}, counted(each, each.unit, texts, format)),
        each.score === null ? null : el("li", {}, fill(texts.score, { score: format.score(each.score) })),
        each.budget_used_percent === null
          ? null
          : el("li", {}, fill(texts.budget, { used: format.target(each.budget_used_percent) })),
      ),
    );
  });
  return panel("objectives", texts.objectives, el("ul", { class: "cards" }, cards));
}

function promise(objective, texts, format) {
  const target = fill(texts.target, { target: format.target(objective.target_percent) });
  if (objective.threshold_ms === null) return target;
  return `${target} · ${within(objective, texts, format)}`;
}

function within({ quantile, threshold_ms: ms }, texts, format) {
  if (quantile === null) return fill(texts.allWithin, { ms: format.count(ms) });
  // The quantile is a text such as 0.95 or 0.999: its digits are moved, nothing is multiplied.
  const digits = quantile.slice(2).padEnd(2, "0");
  const percentile = digits.length > 2 ? `${digits.slice(0, 2)}.${digits.slice(2)}` : digits;
  return fill(texts.within, { quantile: percentile, ms: format.count(ms) });
}

/** Attainment as a length, with a tick where the target is. The figure beside it says the same in words. */
function meter(objective) {
  if (objective.attainment_percent === null) return null;
  const marks = [
    svg("rect", { class: "rail", x: 0, y: 3, width: 100, height: 4 }),
    svg("rect", { class: "fill", x: 0, y: 3, width: objective.attainment_percent, height: 4 }),
  ];
  const target = objective.target_percent;
  if (target !== null) marks.push(svg("line", { class: "tick", x1: target, x2: target, y1: 0, y2: 10 }));
  return svg("svg", { class: "meter", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, marks);
}

const isUptime = (objective) => objective.indicator === "availability";
const isLatency = ({ indicator }) => indicator === "first_token_latency" || indicator === "response_latency";

function charts({ summary, texts, format }, key, chosen, draw) {
  const all = summary.objectives.filter(chosen);
  const heading = key === "uptime" ? texts.timeline : all.some((each) => !isLatency(each)) ? texts.against : texts.latency;
  if (!all.length || summary.shown === null) return el("section", { hidden: true });
  const body = all.map((each) => {
    const name = el("h4", {}, key === "uptime" && all.length === 1 ? null : title(each, texts));
    if (each.withheld.includes("good")) return el("div", { class: "chart" }, name, el("p", {}, hidden(texts)));
    if (!summary.bars.length) return el("div", { class: "chart" }, name, el("p", { class: "muted" }, texts.noWindows));
    const unit = { unit: unitText(each.window_unit, texts) };
    const what = each.threshold_ms === null ? fill(texts.attained, unit) : fill(texts.attainedOf, { ms: format.count(each.threshold_ms) });
    return el(
      "div",
      { class: "chart" },
      name.textContent ? name : null,
      key === "latency" ? el("p", { class: "muted" }, what) : null,
      draw(summary.bars, each, format, texts),
      windowTable(summary.bars, each, key, texts, format),
    );
  });
  return panel(key, heading, ...body);
}

function windowTable(bars, objective, key, texts, format) {
  const columns = [texts.window, texts.state, texts.good, texts.failed, texts.share];
  const rows = bars.map((bar) => {
    const cell = bar.cells[objective.id];
    const counts = cell?.verdict ? [format.count(cell.good), format.count(cell.bad), format.percent(cell.attainment_percent)] : ["–", "–", "–"];
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, format.times(bar.start, bar.end)),
      [kindText(kindOf(bar, objective), texts), ...counts].map((text) => el("td", {}, text)),
    );
  });
  return el(
    "details",
    { class: "table", "data-key": `table-${key}-${objective.id}` },
    el("summary", { "data-key": `summary-${key}-${objective.id}` }, texts.asTable),
    el(
      "div",
      { class: "scroll", "data-key": `scroll-${key}-${objective.id}`, tabindex: "0", role: "region", "aria-label": texts.asTable },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, columns.map((text) => el("th", { scope: "col" }, text)))),
        el("tbody", {}, rows),
      ),
    ),
  );
}

function violations({ summary, texts, format }) {
  const heading = texts.violations;
  if (summary.withheld.includes("violations")) return panel("violations", heading, el("p", {}, hidden(texts)));
  if (summary.shown === null) return el("section", { hidden: true });
  const all = summary.violations ?? [];
  if (!all.length) return panel("violations", heading, el("p", { class: "muted" }, texts.noViolations));
  const names = titles(summary, texts);
  const items = all.map((each) => {
    const when = each.closed ? format.range(each.opened, each.closed) : fill(texts.since, { time: format.moment(each.opened) });
    const facts = [fact(texts.below, format.count(each.windows))];
    if (each.bad !== null) facts.push(fact(texts.failed, counted({ good: each.bad, valid: each.valid }, each.unit, texts, format)));
    facts.push(fact(texts.evidence, evidence(each.evidence, texts, format)));
    if (each.withheld.includes("credit")) facts.push(fact(texts.credit, hidden(texts)));
    else if (each.credit) facts.push(fact(texts.credit, format.money(each.credit)));
    return el(
      "li",
      {},
      el(
        "details",
        { class: "row", "data-key": `violation-${each.id}` },
        el(
          "summary",
          { "data-key": `violation-summary-${each.id}` },
          el("span", { class: "main" }, names.get(each.objective) ?? each.objective),
          el("span", { class: "muted" }, when),
          pill(each.closed ? "none" : "breached", each.closed ? texts.closed : texts.open),
        ),
        el("dl", {}, facts),
      ),
    );
  });
  const list = el("ul", { class: "rows" }, items);
  return panel("violations", heading, list, rest(texts.moreViolations, all.length, summary.violation_count, format));
}

function evidence(items, texts, format) {
  if (!items.length) return texts.noEvidence;
  return el(
    "ul",
    { class: "evidence" },
    items.map((item) => el("li", {}, el("span", { class: "muted" }, `${format.moment(item.at)} · ${item.kind}`), ` ${item.summary}`)),
  );
}
