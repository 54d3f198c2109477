// Rules that pay for lost time (proportional-v1, multiplier-v1, step_table-v1), as they are agreed on. What they pay
// follows from the counts of single windows.

import { SECOND_NS, parseWindowSeconds } from "./dates.js";
import { minorUnits, percentBasisPoints, scaledInteger } from "./money.js";
import { convert, fail } from "./refusal.js";

const MINUTE_NS = 60n * SECOND_NS;

/** `"12.5 %"` as basis points. */
export const percentTextBps = (text) => percentBasisPoints(text.replace(/%$/, "").trimEnd());

/** A rule of a shape-checked document; throws naming the field, or the rows that clash. */
export function readIncidentRule(at, rule, objectives, currency) {
  const { objective, kind } = rule;
  if (!objectives.has(objective)) throw fail(`${at}.objective`, `'${objective}' is not an objective of this agreement`);
  const optional = (key, how) => (key in rule ? convert(`${at}.${key}`, rule[key], how) : null);
  const common = { kind, objective, full: rule.denominator === "full" };
  if (kind === "proportional") return { ...common, ...proportional(at, rule) };
  const hourlyPrice = optional("hourly_price", (text) => minorUnits(text, currency));
  if (hourlyPrice === 0n) throw fail(`${at}.hourly_price`, "must be above 0");
  if (kind === "step_table") {
    const rows = readRows(`${at}.rows`, rule.rows);
    const needsBase = hourlyPrice === null || rows.some((row) => row.creditBps !== null);
    return { ...common, rows, hourlyPrice, needsBase };
  }
  const factorE9 = convert(`${at}.factor`, rule.factor, (text) => scaledInteger(text, 9));
  if (factorE9 === 0n) throw fail(`${at}.factor`, "must be above 0");
  if (rule.per === "period" && "incident_cap" in rule) {
    throw fail(`${at}.incident_cap`, "caps single incidents, and this rule pays for all together (per: period)");
  }
  const incidentCapBps = optional("incident_cap", percentTextBps);
  if (incidentCapBps === 0n) {
    throw fail(`${at}.incident_cap`, `${rule.incident_cap} would cap every credit at nothing; leave it out`);
  }
  optional("longer_than", parseWindowSeconds);
  const roundUpNs = BigInt(optional("round_up_to", parseWindowSeconds) ?? 0) * SECOND_NS;
  const needsBase = hourlyPrice === null || incidentCapBps !== null;
  return { ...common, factorE9, together: rule.per === "period", roundUpNs, hourlyPrice, incidentCapBps, needsBase };
}

function proportional(at, rule) {
  const shortfall = rule.of === "shortfall";
  for (const key of shortfall ? ["affected", "pays", "denominator"] : []) {
    if (key in rule)
      throw fail(`${at}.${key}`, "is about lost time, and this rule pays for the shortfall below the target");
  }
  return { shortfall, hourlyPrice: null, needsBase: true };
}

function readRows(at, said) {
  const rows = [];
  said.forEach((item, index) => {
    const where = `${at}[${index}]`;
    if ("hours" in item === "percent" in item) throw fail(where, "say either hours or percent");
    const number = (key, how) => (key in item ? convert(`${where}.${key}`, item[key], how) : null);
    const [fromNs, belowNs] = [number("from_minutes", minutesNs), number("below_minutes", minutesNs)];
    if (belowNs !== null && belowNs <= fromNs) {
      throw fail(`${where}.below_minutes`, `${item.below_minutes} is not above ${item.from_minutes}`);
    }
    const hours = number("hours", (text) => scaledInteger(text, 9));
    const creditBps = number("percent", percentBasisPoints);
    const row = { fromNs, belowNs, creditNs: hours === null ? null : hours * 3600n, creditBps };
    if (rows.length) checkJoined(where, index, said, rows.at(-1), row);
    rows.push(row);
  });
  if (rows.at(-1).belowNs !== null) {
    throw fail(
      `${at}[${rows.length - 1}].below_minutes`,
      `leaves incidents of ${said.at(-1).below_minutes} minutes and more without a row; the last row has no end`,
    );
  }
  return rows;
}

function checkJoined(where, index, said, before, row) {
  const pair = `rows[${index - 1}] and rows[${index}]`;
  if (before.belowNs === null)
    throw fail(where, `${pair} overlap: rows[${index - 1}] has no end; say its below_minutes`);
  if (before.belowNs !== row.fromNs) {
    const word = before.belowNs < row.fromNs ? "leave a gap" : "overlap";
    throw fail(`${where}.from_minutes`, `${pair} ${word}; a row begins where the one before ends`);
  }
  if ((before.creditNs === null) !== (row.creditNs === null)) {
    throw fail(where, `${pair} contradict each other: one says hours, the other percent`);
  }
  if ((before.creditNs ?? before.creditBps ?? 0n) >= (row.creditNs ?? row.creditBps ?? 0n)) {
    throw fail(where, `${pair} contradict each other: a longer incident must earn more`);
  }
}

const minutesNs = (text) => (scaledInteger(text, 9) * MINUTE_NS) / 10n ** 9n;
