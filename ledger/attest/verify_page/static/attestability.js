// Why a statement carries no proof, by its terms or by counts that it leaves open; empty where it must carry one.
// A verifier derives this again, so that no proof can be left out of a statement that must have one.

import { lengthText } from "./dates.js";
import { tables } from "./tables.js";

const [OBJECTIVES, TIERS, WINDOWS] = [4, 4, 750];
const PRICE_BITS = 64n;

/** The reasons in the words of a statement with these results. */
export function reasonsWithoutProof(agreement, results = []) {
  const undecided = results
    .filter((result) => result.undecided)
    .map((result) => `${result.objective.id} has counts that its data leave undecided, which no circuit adds up`);
  return [
    ...ofCompensation(agreement.compensation),
    ...ofObjectives(agreement),
    ...ofPeriods(agreement),
    ...undecided,
  ];
}

/** Whether the terms by themselves can be proved. */
export const attestableTerms = (agreement) => !reasonsWithoutProof(agreement).length;

function* ofCompensation(terms) {
  const { impact } = terms;
  if (impact && (impact.coefficientE9 >> PRICE_BITS || impact.priceE9 >> PRICE_BITS)) {
    yield (
      `coefficient or unit price of the impact rule has more than ${PRICE_BITS} bits in billionths (of a minor ` +
      `unit), which the circuit incidents_64 takes`
    );
  }
  const kinds = new Set(terms.incidentRules.map((rule) => rule.kind));
  for (const kind of kinds) yield `no circuit works out ${kind}-v1`;
  if (terms.charged) yield "the base are charges that finance records, which no circuit commits to";
  if (terms.scopes.length > 1) {
    yield `the scope cap holds for each of ${terms.scopes.length} scopes, and the circuit has one cap`;
  }
  if (terms.caps.some((cap) => cap.bps !== null)) {
    yield "a cap is a percentage of the base, and the circuit takes amounts";
  }
}

function* ofObjectives({ objectives, compensation }) {
  if (objectives.length > OBJECTIVES) yield `${objectives.length} objectives; the circuit takes at most ${OBJECTIVES}`;
  for (const each of objectives) {
    const why = tables.methods[each.method].notAttestable;
    if (why !== null) yield `${each.id} is measured by ${each.method}: ${why}`;
    else if (each.down && !each.down.scheduled) {
      yield `${each.id} takes what is excluded as up (denominator: full), and no circuit adds up what is not sealed`;
    }
    if (each.wilson) yield `${each.id} asks for confidence (wilson-95), which no circuit works out`;
    if (each.minimumValid) yield `${each.id} has a minimum volume, which no circuit checks`;
  }
  for (const [id, tiers] of compensation.tiered ?? []) {
    if (tiers.length > TIERS) yield `${tiers.length} tiers for ${id}; the circuit takes at most ${TIERS}`;
  }
}

function* ofPeriods({ whole, periodLength, step, mostWindows, windowSeconds }) {
  if (whole.rolling) {
    yield (
      `periods of ${lengthText(periodLength)} every ${lengthText(step)} overlap; the registry takes periods that ` +
      "follow each other"
    );
  }
  if (mostWindows > WINDOWS) {
    yield (
      `a period of ${lengthText(periodLength)} has up to ${mostWindows} windows of ${windowSeconds} s; the largest ` +
      `circuit, compliance_${WINDOWS}x${OBJECTIVES}, takes at most ${WINDOWS}`
    );
  }
}
