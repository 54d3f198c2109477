// The most that an agreement can pay for one period: it has to be an amount that the ledger can hold (2^64 - 1).

import { SECOND_NS } from "./dates.js";
import { capLimit } from "./compensation.js";
import { BASIS_POINTS, Fraction, MAX_MINOR_UNITS, PARTS_PER_BILLION, largest, smaller, sum } from "./money.js";
import { fail } from "./refusal.js";

// Good, bad and undecided of one window, 28 bits each.
const MOST_VALID = 3n * (2n ** 28n - 1n);
const HOUR_NS = 3600n * SECOND_NS;

/** Throws where a period of so many windows could earn more. */
export function requireHoldable(terms, windows, windowSeconds) {
  const base = new Fraction(terms.base);
  const bounds = { base, windows: BigInt(windows), windowNs: BigInt(windowSeconds) * SECOND_NS };
  bounds.incidents = (bounds.windows + 1n) / 2n;
  const amounts = [
    ...(terms.tiered ? [base] : []),
    ...(terms.impact ? [terms.impact.pricePerRequest.times(new Fraction(MOST_VALID * bounds.windows))] : []),
    ...terms.incidentRules.map((rule) => mostOf(rule, bounds)),
  ];
  const most = terms.rulesCombine === "best" ? largest(amounts) : sum(amounts);
  const limits = terms.caps
    .filter((cap) => !terms.charged || cap.amount !== null)
    .map((cap) =>
      capLimit(cap, base).times(new Fraction(cap.level === "scope" ? BigInt(terms.scopes.length || 1) : 1n)),
    );
  if (new Fraction(MAX_MINOR_UNITS).below([most, ...limits].reduce(smaller))) {
    throw fail("compensation.rules", "a period could earn more than 2^64 - 1 minor units; agree on less, or on a cap");
  }
}

function mostOf(rule, { base, windows, windowNs, incidents }) {
  if (rule.kind === "proportional") return base;
  if (rule.kind === "multiplier") return mostMultiplied(rule, { base, windows, windowNs, incidents });
  const row = rule.rows.at(-1);
  if (row.creditNs === null) return base.times(new Fraction(incidents * row.creditBps, BASIS_POINTS));
  if (rule.hourlyPrice === null) return base.times(new Fraction(row.creditNs, windowNs));
  return new Fraction(incidents * rule.hourlyPrice * row.creditNs, HOUR_NS);
}

function mostMultiplied(rule, { base, windows, windowNs, incidents }) {
  const factor = new Fraction(rule.factorE9, PARTS_PER_BILLION);
  const rounded = rule.roundUpNs * (rule.together ? 1n : incidents);
  const most =
    rule.hourlyPrice === null
      ? base.times(factor.plus(new Fraction(rule.roundUpNs, windowNs)))
      : factor
          .times(new Fraction(windows * windowNs))
          .plus(new Fraction(rounded))
          .times(new Fraction(rule.hourlyPrice, HOUR_NS));
  if (rule.incidentCapBps === null) return most;
  return smaller(most, base.times(new Fraction(incidents * rule.incidentCapBps, BASIS_POINTS)));
}
