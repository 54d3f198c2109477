// States and credit from the totals of a statement, by the terms (docs/attestation-format.md, sections 7 and 12).

import { capLimit, NO_CAP } from "./compensation.js";
import { incidentDocument } from "./incidents.js";
import { capDocument, ruleSteps, scopeSteps, shareOf, tierParts } from "./beside_tiers.js";
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
 * The steps from judged objectives to a credit, and the credit itself. `bases` are what percentages are of; `incidents`
 * those of the impact rule. Rules for lost time are taken without incidents.
 */
export function creditTrace(terms, bases, results, incidents = []) {
  const tiers = terms.tiered ? results.map((result) => tierStep(terms.tiered, result)) : [];
  const amounts = new Map(
    tiers.map(({ result, bps }) => [result.objective.id, shareOf(bases.of(result.objective), bps)]),
  );
  const { bps, amount: tierAmount } = combineTiers(terms, bases, tiers, amounts);
  const impact = terms.impact ? sum(incidents.map((each) => each.amount)) : null;
  const rules = ruleSteps(terms.incidentRules, results, (objective) => bases.of(objective));
  const paid = [tierAmount, impact, ...rules.map((step) => step.amount)].filter((amount) => amount !== null);
  const combined = terms.rulesCombine === "best" ? largest(paid) : sum(paid);
  const scopes = terms.scopes.length ? stepsOfScopes(terms, bases, { amounts, tierAmount, impact, rules }) : [];
  const left = scopes.length ? sum(scopes.map((step) => step.left)) : combined;
  const caps = capSteps(terms, left, bases.whole);
  const capped = caps.at(-1)?.amount ?? left;
  const payable = new Fraction(terms.minimum).below(capped);
  const credit = payable ? roundQuotient(capped.n, capped.d, terms.rounding) : 0n;
  const document = {
    currency: terms.currency,
    base: bases.agreed === null ? null : String(bases.agreed),
    tiers: tiers.map((step) => ({ ...step.document, ...bases.shown(step.result.objective) })),
    tiers_combine: terms.tiersCombine,
    combined_bps: Number(bps),
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
  if (terms.simple) return { credit, document };
  const documents = (steps) => steps.map((step) => step.document);
  const apart = scopes.length ? { scopes: documents(scopes) } : {};
  const added = { charges: bases.charges, rules: documents(rules), ...apart, caps: documents(caps) };
  return { credit, document: { ...document, ...added } };
}

/** The percentage and the amount that tiers come to together; null without tiers. */
function combineTiers(terms, bases, tiers, amounts) {
  const percentages = tiers.map((step) => step.bps);
  if (!terms.tiered) return { bps: 0n, amount: null };
  if (!terms.charged) {
    const bps = combineBps(terms.tiersCombine, percentages);
    return { bps, amount: shareOf(bases.whole, bps) };
  }
  const each = [...amounts.values()];
  if (terms.tiersCombine !== "best") {
    return { bps: combineBps("sum", percentages), amount: smaller(sum(each), bases.whole) };
  }
  const best = each.findIndex((amount) => !amount.below(largest(each)));
  return { bps: percentages[best], amount: each[best] };
}

function stepsOfScopes(terms, bases, { amounts, tierAmount, impact, rules }) {
  const parts = [
    ...(tierAmount === null ? [] : [tierParts(terms.tiersCombine, amounts, tierAmount)]),
    ...(impact === null ? [] : [new Map([[terms.impact.objective, impact]])]),
    ...rules.map((step) => new Map([[step.objective, step.amount]])),
  ];
  return scopeSteps(terms, parts, (scope) => bases.ofScope(scope));
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
  const document = {
    objective: result.objective.id,
    good: Number(result.good),
    valid: Number(result.valid),
    target_ppb: Number(result.objective.targetPpb),
    tier: tier ? reached + 1 : null,
    below_ppb: tier ? Number(tier.belowPpb) : null,
    credit_bps: tier ? Number(tier.creditBps) : 0,
  };
  return { result, bps: tier?.creditBps ?? 0n, document };
}

function capSteps({ caps, scopes }, left, base) {
  let amount = left;
  return caps
    .filter((cap) => !scopes.length || cap.level !== "scope")
    .map((cap) => {
      amount = smaller(amount, capLimit(cap, base));
      return { amount, document: { level: cap.level, ...capDocument(cap, base), amount: amount.document() } };
    });
}
