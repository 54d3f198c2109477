// How an agreement turns a breach into money: its `compensation` member, read and held to its rules.

import {
  BASIS_POINTS,
  Fraction,
  MAX_MINOR_UNITS,
  currencyExponent,
  minorUnits,
  percentBasisPoints,
  percentPpb,
  scaledInteger,
} from "./money.js";
import { scopeKey } from "./objectives.js";
import { convert, fail } from "./refusal.js";
import { percentTextBps, readIncidentRule } from "./rules.js";

const LEVELS = ["scope", "service", "contract"];
export const NO_CAP = MAX_MINOR_UNITS;

/** The compensation of a shape-checked agreement; throws naming the field. Amounts are minor units. */
export function readCompensation(document, objectives, businessLevel) {
  const { currency } = document;
  convert("compensation.currency", currency, currencyExponent);
  const amount = (path, text) => convert(path, text, (value) => minorUnits(value, currency));
  const byId = new Map(objectives.map((each) => [each.id, each]));
  const rules = readRules(document.rules, byId, currency, businessLevel);
  const caps = LEVELS.filter((level) => level in document.caps).map((level) =>
    readCap(level, document.caps[level], amount),
  );
  const charged = "charges" in document;
  if (charged === "base" in document) {
    const said = charged ? "contradict each other" : "are both missing";
    throw fail("compensation.base", `base and charges ${said}: the base is agreed on, or handed in by finance`);
  }
  const base = charged ? 0n : amount("compensation.base", document.base);
  const shares = [
    ...rules.based.values(),
    ...caps.filter((cap) => cap.bps !== null).map((cap) => `compensation.caps.${cap.level}`),
  ];
  if (!charged && base === 0n && shares.length) {
    throw fail("compensation.base", `${document.base} ${currency} is zero, and ${shares[0]} is a share of it`);
  }
  const terms = {
    currency,
    base,
    charged,
    chargesOf: document.charges?.of ?? null,
    ...rules,
    tiersCombine: document.tiers_combine,
    rulesCombine: document.rules_combine,
    caps,
    minimum: amount("compensation.minimum", document.minimum),
    rounding: document.rounding,
    visibility: document.credit_visibility,
  };
  terms.scopes = scopesOf(terms, objectives);
  const amounts = caps.filter((cap) => cap.amount !== null).map((cap) => cap.amount);
  terms.cap = amounts.reduce((least, each) => (each < least ? each : least), NO_CAP);
  // Whether tiers and impacts of an agreed base and fixed caps are all there is: the trace says no more then.
  terms.simple = !charged && !rules.incidentRules.length && amounts.length === caps.length && !terms.scopes.length;
  // Whether a rule looks at incidents, which totals do not show.
  terms.paysForIncidents = Boolean(rules.impact) || rules.incidentRules.some((rule) => !rule.shortfall);
  return terms;
}

/** The most that a cap leaves of a base. */
export const capLimit = (cap, base) =>
  cap.amount !== null ? new Fraction(cap.amount) : base.times(new Fraction(cap.bps, BASIS_POINTS));

function readRules(documents, objectives, currency, level) {
  const found = { tiered: null, impact: null, incidentRules: [], based: new Map() };
  documents.forEach((rule, index) => {
    const at = `compensation.rules[${index}]`;
    const { kind } = rule;
    if (kind === "tiered" || kind === "impact") {
      if (found[kind]) throw fail(at, `a second ${kind} rule; an agreement has at most one of each kind`);
      found[kind] =
        kind === "tiered" ? readTiers(at, rule, objectives) : readImpact(at, rule, objectives, currency, level);
      for (const id of kind === "tiered" ? found.tiered.keys() : []) addBased(found, id, `${at}.tiers.${id}`);
      return;
    }
    const read = readIncidentRule(at, rule, objectives, currency);
    if (found.incidentRules.some((other) => other.kind === kind && other.objective === read.objective)) {
      throw fail(at, `a second ${kind} rule for ${read.objective}; an objective has at most one of each kind`);
    }
    found.incidentRules.push(read);
    if (read.needsBase) addBased(found, read.objective, at);
  });
  return found;
}

function addBased({ based }, id, clause) {
  if (!based.has(id)) based.set(id, clause);
}

function readCap(level, text, amount) {
  const path = `compensation.caps.${level}`;
  const percent = text.endsWith("%");
  const most = percent ? convert(path, text, percentTextBps) : amount(path, text);
  if (most === 0n) throw fail(path, `${text} would cap every credit at nothing; leave the cap out, or the rules`);
  return { level, amount: percent ? null : most, bps: percent ? most : null };
}

/** By objective the tiers: `belowPpb`, `creditBps`. */
function readTiers(at, rule, objectives) {
  const found = new Map();
  for (const [id, steps] of Object.entries(rule.tiers)) {
    const path = `${at}.tiers.${id}`;
    if (!objectives.has(id)) throw fail(path, "is not an objective of this agreement");
    const tiers = [];
    steps.forEach((step, index) => {
      const where = `${path}[${index}]`;
      const belowPpb = convert(`${where}.below`, step.below, percentPpb);
      const creditBps = convert(`${where}.credit_percent`, step.credit_percent, percentBasisPoints);
      if (belowPpb > objectives.get(id).targetPpb) {
        throw fail(`${where}.below`, `${step.below} is above the target: a met objective would pay`);
      }
      const before = tiers.at(-1);
      if (before && (belowPpb >= before.belowPpb || creditBps <= before.creditBps)) {
        const last = steps[index - 1];
        throw fail(
          where,
          `below ${step.below} pays ${step.credit_percent} %, after below ${last.below} pays ${last.credit_percent} %: ` +
            "thresholds must fall and credits must rise from tier to tier",
        );
      }
      if (creditBps === 0n) throw fail(`${where}.credit_percent`, "must be above 0");
      tiers.push({ belowPpb, creditBps });
    });
    found.set(id, tiers);
  }
  if (!found.size) throw fail(`${at}.tiers`, "names no objective");
  return found;
}

function readImpact(at, rule, objectives, currency, level) {
  if (!objectives.has(rule.objective)) {
    throw fail(`${at}.objective`, `'${rule.objective}' is not an objective of this agreement`);
  }
  if (!Object.hasOwn(rule.level_coefficients, level)) {
    throw fail(`${at}.level_coefficients`, `has no coefficient for business_level ${level}`);
  }
  const nine = (text) => scaledInteger(text, 9);
  const coefficient = convert(`${at}.level_coefficients.${level}`, rule.level_coefficients[level], nine);
  const price = convert(`${at}.unit_price`, rule.unit_price, nine);
  const minor = 10n ** BigInt(currencyExponent(currency));
  const priceE9 = price * minor;
  const pricePerRequest = new Fraction(coefficient * priceE9, 10n ** 18n);
  return { objective: rule.objective, coefficientE9: coefficient, priceE9, pricePerRequest };
}

/** How many scopes a scope cap holds for one by one; the objectives paid for in each. */
function scopesOf(terms, objectives) {
  const tiered = terms.tiered ? [new Set(terms.tiered.keys())] : [];
  const single = [...(terms.impact ? [terms.impact] : []), ...terms.incidentRules];
  const paid = new Set([...tiered.flatMap((each) => [...each]), ...single.map((rule) => rule.objective)]);
  const found = new Map();
  for (const each of objectives) {
    if (!paid.has(each.id)) continue;
    const key = scopeKey(each.scope);
    if (!found.has(key)) found.set(key, { scope: each.scope, ids: [] });
    found.get(key).ids.push(each.id);
  }
  const cap = terms.caps.find((each) => each.level === "scope");
  const scopesOfTiers = new Set(
    objectives.filter((each) => tiered[0]?.has(each.id)).map((each) => scopeKey(each.scope)),
  );
  const summed = terms.rulesCombine === "sum" || (terms.tiersCombine === "sum" && scopesOfTiers.size > 1);
  const shares = cap !== undefined && cap.bps !== null && terms.charged;
  const others = objectives.some((each) => !found.has(scopeKey(each.scope)));
  const apart = (found.size > 1 && (summed || shares)) || (shares && found.size === 1 && others);
  return cap !== undefined && apart ? [...found.values()] : [];
}
