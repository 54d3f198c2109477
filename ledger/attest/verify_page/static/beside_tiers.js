// What is paid beside tiers and impacts, as far as totals alone say it: rules for lost time without their incidents,
// and the caps of scopes.

import { capLimit } from "./compensation.js";
import { BASIS_POINTS, Fraction, PARTS_PER_BILLION, largest, smaller, sum } from "./money.js";

const ZERO = new Fraction(0n);

/** The steps of rules for lost time where no incident is known; `baseOf` gives that of an objective. */
export function ruleSteps(rules, results, baseOf) {
  return rules.map((rule) => {
    const result = results.find((each) => each.objective.id === rule.objective);
    const base = baseOf(result.objective);
    const missing = rule.shortfall ? shortfall(result) : null;
    const amount = missing === null ? ZERO : base.times(missing);
    const document = {
      method: `${rule.kind}-v1`,
      objective: rule.objective,
      base: rule.needsBase ? base.document() : null,
      hourly_price: rule.hourlyPrice === null ? null : String(rule.hourlyPrice),
      missing: missing?.document() ?? null,
      incidents: [],
      amount: amount.document(),
    };
    return { objective: rule.objective, amount, document };
  });
}

/** How far a result is below its target, as a part of 1; what is undecided is on the provider's side. */
function shortfall({ objective, good, valid, undecided, state }) {
  const decided = state === "met" || state === "breached";
  const most = good + undecided;
  if (!decided || most * PARTS_PER_BILLION >= valid * objective.targetPpb) return ZERO;
  return new Fraction(objective.targetPpb, PARTS_PER_BILLION).plus(new Fraction(-most, valid));
}

/** The parts of a tier amount by the objectives that they are paid for; `amounts` are those of each by itself. */
export function tierParts(combine, amounts, tierAmount) {
  if (combine === "best") {
    const most = largest([...amounts.values()]);
    const [best] = [...amounts].find(([, amount]) => !amount.below(most));
    return new Map([[best, amounts.get(best)]]);
  }
  const whole = sum([...amounts.values()]);
  const paid = [...amounts].filter(([, amount]) => amount.n !== 0n);
  // Held to the whole base, a sum is less than its parts.
  return new Map(paid.map(([id, amount]) => [id, amount.times(tierAmount).times(new Fraction(whole.d, whole.n))]));
}

/** What is paid in each scope and what its cap leaves of it (`left`); `parts` are what each rule pays, by objective. */
export function scopeSteps(terms, parts, baseOf) {
  const cap = terms.caps.find((each) => each.level === "scope");
  const totals = parts.map((each) => sum([...each.values()]));
  const best = totals.findIndex((total) => !total.below(largest(totals)));
  const counted = terms.rulesCombine === "best" ? [parts[best]] : parts;
  const paid = new Map();
  for (const [id, amount] of counted.flatMap((each) => [...each])) paid.set(id, amount.plus(paid.get(id) ?? ZERO));
  return terms.scopes.map(({ scope, ids }) => {
    const inside = [...paid].filter(([id, amount]) => ids.includes(id) && amount.n !== 0n);
    const amount = sum(inside.map(([, part]) => part));
    const left = smaller(amount, capLimit(cap, baseOf(scope)));
    const document = {
      scope: scopeText(scope),
      parts: inside.map(([objective, part]) => ({ objective, amount: part.document() })),
      amount: amount.document(),
      ...capDocument(cap, baseOf(scope)),
      left: left.document(),
    };
    return { left, document };
  });
}

/** How a cap is held against a base. */
export const capDocument = (cap, base) => ({
  percent_bps: cap.bps === null ? null : Number(cap.bps),
  limit: capLimit(cap, base).document(),
});

const scopeText = ({ region, model }) =>
  [...(region ? [`region=${region}`] : []), ...(model ? [`model=${model}`] : [])].join(" ") || "all";

/** A share of a base in basis points. */
export const shareOf = (base, bps) => base.times(new Fraction(bps, BASIS_POINTS));
