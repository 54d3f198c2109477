// States and credit from the totals of a statement, by the terms (docs/attestation-format.md, sections 7 and 12).

import { capLimit, NO_CAP } from "./compensation.js";
import { incidentDocument } from "./incidents.js";
import { BASIS_POINTS, Fraction, PARTS_PER_BILLION, largest, roundQuotient, smaller, sum } from "./money.js";

// The square of z for one side at 95 %, in units of 10^-18.
const Z_SQUARED_E18 = 2_705_543_454_095_414_567n;

/** The state of an objective by its counts. `volume` is what was valid in the indicator's unit. */
export function judge(objective, good, valid, undecided, volume) {
  const { targetPpb } = objective;
  if (valid === 0n) return "no_data";
  if (volume < objective.minimumValid) return "insufficient_data";
  if (good * PARTS_PER_BILLION >= valid * targetPpb) return "met";
  if ((good + undecided) * PARTS_PER_BILLION >= valid * targetPpb) return "insufficient_data";
  return objective.wilson && !wilsonMisses(good + undecided, valid, targetPpb) ? "insufficient_data" : "breached";
}

function wilsonMisses(good, valid, target) {
  const difference = valid * target - good * PARTS_PER_BILLION;
  const short = difference > 0n ? difference : 0n;
  return short ** 2n * 10n ** 18n > Z_SQUARED_E18 * valid * target * (PARTS_PER_BILLION - target);
}

/**
 * The steps from judged objectives to a credit, and the credit itself. `base` is that of the period; terms with charges
 * or rules for lost time have no such trace here. `incidents` are those of the impact rule.
 */
export function creditTrace(terms, base, results, incidents = []) {
  const tiers = terms.tiered ? results.map((result) => tierStep(terms.tiered, result)) : [];
  const percentages = tiers.map((step) => BigInt(step.credit_bps));
  const combinedBps = combineBps(terms.tiersCombine, percentages);
  const tierAmount = terms.tiered ? new Fraction(base * combinedBps, BASIS_POINTS) : null;
  const impact = terms.impact ? sum(incidents.map((each) => each.amount)) : null;
  const amounts = [tierAmount, impact].filter((amount) => amount !== null);
  const combined = terms.rulesCombine === "best" ? largest(amounts) : sum(amounts);
  const caps = capSteps(terms.caps, combined, new Fraction(base));
  const capped = caps.at(-1)?.amount ?? combined;
  const payable = new Fraction(terms.minimum).below(capped);
  const credit = payable ? roundQuotient(capped.n, capped.d, terms.rounding) : 0n;
  const document = {
    currency: terms.currency,
    base: String(base),
    tiers,
    tiers_combine: terms.tiersCombine,
    combined_bps: Number(combinedBps),
    tier_amount: tierAmount?.document() ?? null,
    price_per_request: terms.impact?.pricePerRequest.document() ?? null,
    incidents: incidents.map(incidentDocument),
    impact_amount: impact?.document() ?? null,
    rules_combine: terms.rulesCombine,
    combined_amount: combined.document(),
    cap: terms.cap === NO_CAP ? null : String(terms.cap),
    capped_amount: capped.document(),
    minimum: String(terms.minimum),
    payable,
    rounding: terms.rounding,
    credit: String(credit),
  };
  return {
    credit,
    document: terms.simple ? document : { ...document, charges: null, rules: [], caps: caps.map(capDocument) },
  };
}

function combineBps(how, percentages) {
  if (how === "best") return percentages.reduce((best, each) => (each > best ? each : best), 0n);
  const whole = percentages.reduce((total, each) => total + each, 0n);
  return whole < BASIS_POINTS ? whole : BASIS_POINTS;
}

/** The last tier that a result is strictly below, and what it pays. */
function tierStep(tiered, result) {
  const tiers = tiered.get(result.objective.id) ?? [];
  const judged = result.state === "met" || result.state === "breached";
  const good = result.good + result.undecided;
  const below = (tier) => good * PARTS_PER_BILLION < result.valid * tier.belowPpb;
  const reached = judged ? tiers.findLastIndex(below) : -1;
  const tier = tiers[reached];
  return {
    objective: result.objective.id,
    good: Number(result.good),
    valid: Number(result.valid),
    target_ppb: Number(result.objective.targetPpb),
    tier: tier ? reached + 1 : null,
    below_ppb: tier ? Number(tier.belowPpb) : null,
    credit_bps: tier ? Number(tier.creditBps) : 0,
  };
}

function capSteps(caps, combined, base) {
  let amount = combined;
  return caps.map((cap) => {
    const limit = capLimit(cap, base);
    amount = smaller(amount, limit);
    return { cap, limit, amount };
  });
}

const capDocument = ({ cap, limit, amount }) => ({
  level: cap.level,
  percent_bps: cap.bps === null ? null : Number(cap.bps),
  limit: limit.document(),
  amount: amount.document(),
});
