// Charges that finance recorded as the base of credits: what of an invoice's lines is the base of a period.

import { parseInstantNs } from "./calendar.js";
import { parseDate } from "./dates.js";
import { Fraction, currencyExponent, minorUnits, scaledInteger } from "./money.js";
import { periodName, shareOfTime } from "./periods.js";
import { convert, fail, require } from "./refusal.js";
import { checkShape } from "./shape.js";
import { tables } from "./tables.js";

/** The charges that a statement says it stands on: `period`, `documents`, and `lines` with their amounts. */
export function recordedCharges({ agreement, period, issued }) {
  const said = issued.trace.charges;
  const named = typeof said === "object" && said !== null && !Array.isArray(said);
  require(named, "the trace names no charges, and the terms take their base from them");
  const before = agreement.compensation.chargesOf === "previous_period";
  const charged = agreement.periods.uncut(period.first, before ? 1 : 0);
  const name = periodName(charged);
  require(said.period === name, `the base of this period are the charges of ${name}`);
  checkShape(tables.chargeLines, said.lines ?? null, "lines");
  const lines = said.lines.map((item, at) => readLine(`lines[${at}]`, item, { agreement, charged, period, before }));
  const charges = { period: name, documents: said.lines, lines, shared: period.whole !== null };
  requireBases(agreement, charges);
  return charges;
}

/** The recurring charges of the service that lie in one of the scopes: their sum, and the numbers of the lines. */
export function chargedBase({ lines }, service, scopes) {
  const inside = (line, scope) => ["region", "model"].every((key) => scope[key] === null || scope[key] === line[key]);
  const found = lines
    .map((line, at) => ({ ...line, at }))
    .filter((line) => line.kind === "recurring" && line.service === service)
    .filter((line) => scopes.some((scope) => inside(line, scope)));
  const amount = found.reduce((total, line) => total.plus(line.amount), new Fraction(0n));
  return { amount, lines: found.map((line) => line.at) };
}

/** Charges must leave a base to each objective that a rule pays a share for; a part of a period may be without. */
function requireBases({ objectives, compensation, document }, charges) {
  if (charges.shared) return;
  for (const [id, clause] of compensation.based) {
    const { scope } = objectives.find((each) => each.id === id);
    const { amount } = chargedBase(charges, document.service.name, [scope]);
    require(amount.n !== 0n, `the charges of the trace cannot be a base: ${clause} pays a share of nothing`);
  }
}

function readLine(at, item, { agreement, charged, period, before }) {
  const { currency } = agreement.compensation;
  convert(`${at}.currency`, item.currency, currencyExponent);
  const units = convert(`${at}.amount`, item.amount, (text) => minorUnits(text, item.currency));
  const life = "life" in item ? readLife(at, item.life, charged.interval) : null;
  // Of a part of a period each line's share, by the life of what it is for, or by the whole period.
  const of = before || life === null ? period.whole : life;
  const share = period.whole === null ? units : shareOfTime(units, of, period.interval);
  const amount = new Fraction(share).times(rateOf(at, item, currency));
  return { service: item.service, region: item.region ?? null, model: item.model ?? null, kind: item.kind, amount };
}

function readLife(at, life, { startNs, endNs }) {
  const [from, until] = ["from", "until"].map((key) => convert(`${at}.life.${key}`, life[key], parseInstantNs));
  if (from >= until) throw fail(`${at}.life`, `ends at ${life.until}, which is not after ${life.from}`);
  if (from < startNs || until > endNs) throw fail(`${at}.life`, "lies outside of the period that is charged");
  return { startNs: from, endNs: until };
}

/** Minor units of the credit's currency for one minor unit of the line's. */
function rateOf(at, item, currency) {
  if (!("rate" in item)) {
    if (item.currency === currency) return new Fraction(1n);
    throw fail(`${at}.rate`, `is missing: the line is in ${item.currency}, and credits are in ${currency}`);
  }
  if (item.currency === currency) throw fail(`${at}.rate`, `converts ${currency} to itself; leave it out`);
  convert(`${at}.rate.date`, item.rate.date, parseDate);
  const rate = convert(`${at}.rate.rate`, item.rate.rate, (text) => scaledInteger(text, 9));
  if (rate === 0n) throw fail(`${at}.rate.rate`, "must be above 0");
  const [to, from] = [currency, item.currency].map((code) => 10n ** BigInt(currencyExponent(code)));
  return new Fraction(rate * to, 10n ** 9n * from);
}
