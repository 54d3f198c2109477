// Credits, where each statement stands, and how far its proof has come.

import { el, svg } from "./dom.js";
import { fill } from "./messages.js";
import { fact, hidden, panel, periodsListed, rest, titles } from "./pieces.js";

export function credits(context) {
  const { summary, texts, format } = context;
  const body = [];
  if (!summary.statements.length) return panel("credits", texts.credits, el("p", { class: "muted" }, texts.noCredits));
  if (summary.credit_totals === null) body.push(el("p", {}, hidden(texts)));
  else if (summary.credit_totals.length) {
    const sum = summary.credit_totals.map((each) => format.money(each)).join(" + ");
    body.push(el("p", { class: "total" }, fill(texts.total, { sum })));
  }
  body.push(toBeClaimed(context));
  body.push(el("ul", { class: "rows" }, summary.statements.map((each) => credit(each, context))));
  if (summary.statements.length < summary.statement_count) body.push(el("p", { class: "muted" }, periodsListed(summary, texts, format)));
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
        el(
          "span",
          { class: "states" },
          standingPill(statement, texts, format),
          statement.proof === null ? hidden(texts) : proofPill(statement.proof, texts, format),
        ),
      ),
      statement.period === summary.shown?.period ? [creditLines(context), claimRows(context)] : null,
      el("dl", {}, standingFacts(statement, texts, format), proofFacts(statement, texts)),
      statement.bundle ? verifying(statement, texts) : null,
    ),
  );
}

/** What is owed only once it is asked for, and until when: nobody should find that out too late. */
function toBeClaimed({ summary, texts, format }) {
  const due = (summary.claims ?? []).filter((each) => each.status === "open");
  if (!due.length) return null;
  const first = due.reduce((one, other) => (BigInt(other.deadline.ns) < BigInt(one.deadline.ns) ? other : one));
  const sum = due.map((each) => format.money(each.credit)).join(" + ");
  return el("p", { class: "remark claims" }, fill(texts.toBeClaimed, { sum, time: format.moment(first.deadline) }));
}

/** The claims of the period shown, incident by incident. */
function claimRows({ summary, texts, format }) {
  if (!summary.claims?.length) return null;
  const name = incidents({ summary, texts, format });
  const rows = summary.claims.map((each) => {
    const until = each.status === "open" ? fill(texts.claimUntil, { time: format.moment(each.deadline) }) : texts.claimStates[each.status];
    return el("tr", {}, el("th", { scope: "row" }, name(each)), el("td", {}, until), el("td", {}, format.money(each.credit)));
  });
  const columns = [texts.claim, texts.state, texts.credit].map((text) => el("th", { scope: "col" }, text));
  return el("div", { class: "lines claims" }, el("table", {}, el("thead", {}, el("tr", {}, columns)), el("tbody", {}, rows)));
}

/** What a line or a claim is for: its objective, and when its incident began. */
function incidents({ summary, texts, format }) {
  const names = titles(summary, texts);
  const times = new Map((summary.violations ?? []).map((each) => [each.id, each.opened]));
  return ({ objective, violation_id: incident }) => {
    const name = objective === null ? texts.wholePeriod : (names.get(objective) ?? objective);
    return times.has(incident) ? `${name} · ${format.moment(times.get(incident))}` : name;
  };
}

/** What a credit is made of: a line for each violation, and what was taken back. */
function creditLines({ summary, texts, format }) {
  const lines = summary.credit_lines;
  if (!lines?.length) return null;
  const name = incidents({ summary, texts, format });
  const rows = lines.map((line) => {
    const what = name(line);
    const said = line.reverses ? texts.takenBack : line.restates ? texts.changed : "{what}";
    return el(
      "tr",
      { class: line.status === "void" ? "void" : "" },
      el("th", { scope: "row" }, fill(said, { what })),
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

/** Whether facts may still change it, in a sentence. */
export const standingHelp = ({ standing, accepts_until: until }, texts, format) =>
  fill(texts.standingHelp[standing], { time: format.moment(until) });

/** Whether facts may still change it, and which version it is where that is not the first. */
function standingPill({ standing, version }, texts, format) {
  const words = [texts.standings[standing], version > 1 ? fill(texts.replaced, { n: format.count(version) }) : null];
  return el("span", { class: `standing ${standing}` }, words.filter(Boolean).join(" · "));
}

function standingFacts(statement, texts, format) {
  const said = [standingHelp(statement, texts, format)];
  const { restates: id, reason, credit_difference: difference } = statement;
  if (id !== null) said.push(fill(texts.replaces, { id, reason }));
  if (difference !== null) said.push(fill(texts.differs, { amount: format.difference(difference) }));
  return fact(texts.standing, said.map((text) => el("p", {}, text)));
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
  if (statement.published?.length) {
    const roots = statement.published.map((hash) => el("p", {}, el("code", {}, hash)));
    facts.push(fact(texts.published, [el("p", {}, texts.publishedHelp), ...roots]));
  }
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

const STEPS = ["proved", "anchored", "confirmed", "final"];

/** The steps from proof to final record, as many filled as are done; for those who do not see them they are counted. */
function proofPill(proof, texts, format) {
  const done = STEPS.indexOf(proof) + 1;
  const steps = STEPS.map((_, step) => svg("circle", { cx: 5 + step * 11, cy: 6, r: 4, class: step < done ? "done" : "due" }));
  const step = { n: format.count(done), all: format.count(STEPS.length) };
  return el(
    "span",
    { class: `proof ${proof}` },
    svg("svg", { viewBox: "0 0 43 12", "aria-hidden": "true" }, steps),
    proofText(proof, texts),
    el("span", { class: "unseen" }, ` ${fill(texts.proofStep, step)}`),
  );
}
