// The summary as sections of the page. Each is a function of the answer alone; what may not be seen is said so, and
// never drawn as zero or as nothing.

import { counted, kindOf, kindText, shares, strip, title, unitText } from "./charts.js";
import { el, svg } from "./dom.js";
import { fill } from "./messages.js";

const ICONS = {
  met: "M3 8.5l3.2 3.2L13 4.8",
  breached: "M4 4l8 8M12 4l-8 8",
  none: "M4 8h8",
  lock: "M4.5 7.5h7v5h-7zM6 7.5V5.6a2 2 0 0 1 4 0v1.9",
};

/** The sections in order, as [key, what it is made from, how it is made]. A section whose material is as before stays. */
export function sectionsOf(context) {
  const { summary } = context;
  const material = [summary.objectives, summary.bars, summary.shown];
  return [
    ["head", [summary.agreement, summary.shown, summary.objectives, summary.statements], () => head(context)],
    ["objectives", [summary.objectives, summary.shown], () => objectives(context)],
    ["uptime", material, () => charts(context, "uptime", isUptime, strip)],
    ["latency", material, () => charts(context, "latency", (each) => !isUptime(each), shares)],
    ["violations", [summary.violations, summary.violation_count, summary.shown, summary.objectives], () => violations(context)],
    ["credits", creditMaterial(summary), () => credits(context)],
  ];
}

const creditMaterial = (summary) => [
  ...[summary.statements, summary.statement_count, summary.credit_totals, summary.credit_lines, summary.credit_line_count],
  ...[summary.shown, summary.objectives],
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
  const { agreement, shown, statements } = summary;
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
    el("div", { class: "now" }, verdict(summary, texts, format), statements.length > 1 ? picker : day),
    shown?.state === "withheld" ? el("p", { class: "remark" }, texts.withheldWhy) : null,
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

const titles = (summary, texts) => new Map(summary.objectives.map((each) => [each.id, title(each, texts)]));

const fact = (name, value) => [el("dt", {}, name), el("dd", {}, value)];

/** That a list is not the whole, where it is not. */
function rest(text, shown, all, format) {
  if (shown >= all) return null;
  return el("p", { class: "muted" }, fill(text, { shown: format.count(shown), all: format.count(all) }));
}

function evidence(items, texts, format) {
  if (!items.length) return texts.noEvidence;
  return el(
    "ul",
    { class: "evidence" },
    items.map((item) => el("li", {}, el("span", { class: "muted" }, `${format.moment(item.at)} · ${item.kind}`), ` ${item.summary}`)),
  );
}

function credits(context) {
  const { summary, texts, format } = context;
  const body = [];
  if (!summary.statements.length) return panel("credits", texts.credits, el("p", { class: "muted" }, texts.noCredits));
  if (summary.credit_totals === null) body.push(el("p", {}, hidden(texts)));
  else if (summary.credit_totals.length) {
    const sum = summary.credit_totals.map((each) => format.money(each)).join(" + ");
    body.push(el("p", { class: "total" }, fill(texts.total, { sum })));
  }
  body.push(el("ul", { class: "rows" }, summary.statements.map((each) => credit(each, context))));
  body.push(rest(texts.more, summary.statements.length, summary.statement_count, format));
  return panel("credits", texts.credits, ...body);
}

function credit(statement, context) {
  const { summary, texts, format } = context;
  const unseen = statement.withheld.includes("credit");
  const amount = unseen ? hidden(texts) : statement.credit ? format.money(statement.credit) : texts.noCredit;
  return el(
    "li",
    {},
    el(
      "details",
      { class: "row", "data-key": `statement-${statement.id}` },
      el(
        "summary",
        { "data-key": `statement-summary-${statement.id}` },
        el("span", { class: "main" }, format.period(statement.start, statement.end)),
        el("span", { class: statement.credit ? "amount" : "muted" }, amount),
        statement.proof === null ? hidden(texts) : proofPill(statement.proof, texts),
      ),
      statement.period === summary.shown?.period ? creditLines(context) : null,
      el("dl", {}, proofFacts(statement, texts)),
      statement.bundle ? verifying(statement, texts) : null,
    ),
  );
}

/** What a credit is made of: a line for each violation, and what was taken back. */
function creditLines({ summary, texts, format }) {
  const lines = summary.credit_lines;
  if (!lines?.length) return null;
  const names = titles(summary, texts);
  const times = new Map((summary.violations ?? []).map((each) => [each.id, each.opened]));
  const rows = lines.map((line) => {
    const opened = times.get(line.violation_id);
    const name = line.objective === null ? texts.wholePeriod : (names.get(line.objective) ?? line.objective);
    const what = opened ? `${name} · ${format.moment(opened)}` : name;
    return el(
      "tr",
      { class: line.status === "void" ? "void" : "" },
      el("th", { scope: "row" }, line.reverses ? fill(texts.takenBack, { what }) : what),
      el("td", {}, texts.lineStates[line.status] ?? line.status),
      el("td", {}, format.money(line.credit)),
    );
  });
  const columns = [texts.line, texts.state, texts.credit].map((text) => el("th", { scope: "col" }, text));
  return el(
    "div",
    { class: "lines" },
    el("table", {}, el("thead", {}, el("tr", {}, columns)), el("tbody", {}, rows)),
    rest(texts.moreLines, lines.length, summary.credit_line_count, format),
  );
}

function proofFacts(statement, texts) {
  const coded = (name, value) => fact(name, el("code", {}, value));
  const facts = [coded(texts.statement, statement.id)];
  if (statement.proof !== null) {
    const why = [texts.proofHelp[statement.proof], ...(statement.unattested_reasons ?? []), statement.dev_key ? texts.devKey : null];
    facts.push(fact(proofText(statement.proof, texts), why.filter(Boolean).map((text) => el("p", {}, text))));
  }
  if (statement.proof_hash) facts.push(coded(texts.proofHash, statement.proof_hash));
  if (statement.tx_hash) facts.push(coded(texts.transaction, statement.tx_hash));
  return facts;
}

function verifying(statement, texts) {
  const command = `sla-ledger verify ${fileName(statement.id)} --trust trust.json`;
  return el(
    "div",
    { class: "verify" },
    el("h5", {}, texts.verify),
    el(
      "p",
      {},
      el("button", { type: "button", "data-action": "bundle", "data-bundle": statement.bundle, "data-file": fileName(statement.id), "data-key": `bundle-${statement.id}` }, texts.download),
      el("span", { class: "outcome", role: "status" }),
    ),
    el("p", { class: "muted" }, texts.verifyHow),
    el("pre", { tabindex: "0", "data-key": `command-${statement.id}` }, el("code", {}, command)),
  );
}

const fileName = (id) => `${id}.json`;

function proofText(proof, texts) {
  return texts[`proof${proof[0].toUpperCase()}${proof.slice(1)}`] ?? proof;
}

/** Three steps from proof to final record, as many filled as are done. */
function proofPill(proof, texts) {
  const done = ["none", "proved", "anchored", "confirmed"].indexOf(proof);
  const steps = [0, 1, 2].map((step) => svg("circle", { cx: 5 + step * 11, cy: 6, r: 4, class: step < done ? "done" : "due" }));
  return el(
    "span",
    { class: `proof ${proof}` },
    svg("svg", { viewBox: "0 0 32 12", "aria-hidden": "true" }, steps),
    proofText(proof, texts),
  );
}

/** What may not be seen: said in words, with a lock. */
function hidden(texts, what) {
  return el("span", { class: "hidden" }, icon("lock"), what ? `${fill(what, { target: "" }).trim()}: ${texts.hidden}` : texts.hidden);
}

function pill(state, text) {
  const kind = state === "met" || state === "breached" ? state : "none";
  return el("span", { class: `pill ${kind}` }, icon(kind), text);
}

function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

function panel(key, heading, ...body) {
  const id = `heading-${key}`;
  return el("section", { class: `panel ${key}`, "aria-labelledby": id }, el("h3", { id }, heading), ...body);
}
