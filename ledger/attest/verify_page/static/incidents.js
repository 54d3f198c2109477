// Incidents: runs of windows that break an objective's promise, and what the impact rule (impact-v1) pays for each.

import { attestableTerms } from "./attestability.js";
import { Fraction, PARTS_PER_BILLION } from "./money.js";
import { require } from "./refusal.js";
import { tables } from "./tables.js";

const NUMBERS = ["first_window", "windows", "good", "valid"];

/** The incidents that a statement lists, with what follows from each; throws where they cannot be the period's. */
export function statedIncidents(found) {
  const listed = found.issued.trace.incidents;
  require(Array.isArray(listed), "the trace lists no incidents, and the terms pay for them");
  const { windows } = found;
  let end = -1;
  const incidents = listed.map((item, index) => {
    const [first, count, good, valid] = numbersOf(item, index);
    // Runs of windows that break the promise are as long as they can be: one that keeps it lies between two.
    const fits = end < first && count > 0 && first + count <= windows.length && good >= 0 && good <= valid;
    require(fits, `incident ${index} is no run of windows of this period after the one before it`);
    end = first + count;
    return incident({ first, count, good: BigInt(good), valid: BigInt(valid) }, found);
  });
  requireOfTotals(found, incidents);
  return incidents;
}

/** The incidents of opened windows, each with its counts by objective. */
export function countedIncidents(found, opened) {
  const { objectives, compensation, windowSeconds } = found.agreement;
  const at = objectives.findIndex((each) => each.id === compensation.impact.objective);
  const objective = objectives[at];
  const size = isRatio(objective) ? (objective.windowSeconds ?? windowSeconds) / windowSeconds : 1;
  const sums = (from, to) => {
    const run = opened.slice(from, to);
    const [good, bad] = ["good", "bad"].map((side) => run.reduce((total, window) => total + window[side][at], 0n));
    return { good, bad };
  };
  const missed = Array.from({ length: Math.floor(opened.length / size) }, (_, index) => {
    const { good, bad } = sums(index * size, (index + 1) * size);
    return breaks(objective, good, bad) && good + bad >= objective.minimumValid;
  });
  return runsOf(missed).map(([from, to]) => {
    const { good, bad } = sums(from * size, to * size);
    return incident({ first: from * size, count: (to - from) * size, good, valid: good + bad }, found);
  });
}

/** Incidents as the trace of a credit lists them. */
export const incidentDocument = ({ objective, first, count, startNs, endNs, good, valid, amount }) => ({
  objective,
  first_window: first,
  windows: count,
  start_ns: String(startNs),
  end_ns: String(endNs),
  good: Number(good),
  valid: Number(valid),
  amount: amount.document(),
});

function incident({ first, count, good, valid }, { agreement, windows }) {
  const { objective, pricePerRequest } = agreement.compensation.impact;
  const [{ startNs }, { endNs }] = [windows[first], windows[first + count - 1]];
  const amount = pricePerRequest.times(new Fraction(valid));
  return { objective, first, count, startNs, endNs, good, valid, amount };
}

function numbersOf(item, index) {
  const numbers = typeof item === "object" && item !== null ? NUMBERS.map((name) => item[name]) : [];
  const message = `incident ${index} has not the numbers of one`;
  require(numbers.length > 0 && numbers.every((each) => Number.isSafeInteger(each)), message);
  return numbers;
}

/**
 * The requests of the incidents are among those of the period, each incident breaks the promise, and what is left keeps
 * it: so do sums of windows that each keep it. Where the objective's windows do not fill the period, what lies behind the
 * last of them is in the totals and in no window, and may be as bad as it is.
 */
function requireOfTotals({ agreement, results, windows }, incidents) {
  const { objective: id } = agreement.compensation.impact;
  const { objective, good, valid } = results.find((each) => each.objective.id === id);
  const [goodLeft, badLeft] = incidents.reduce(
    ([goods, bads], each) => [goods - each.good, bads - (each.valid - each.good)],
    [good, valid - good],
  );
  require(goodLeft >= 0n && badLeft >= 0n, "the incidents have more requests than the period");
  if (!attestableTerms(agreement)) return;
  incidents.forEach((each, index) => {
    const broken = breaks(objective, each.good, each.valid - each.good);
    require(broken, `incident ${index} keeps the promise of ${id}`);
  });
  const unjudged = (windows.length * agreement.windowSeconds) % (objective.windowSeconds ?? 1);
  const kept = unjudged > 0 || !breaks(objective, goodLeft, badLeft);
  require(kept, "what the incidents leave of the period still breaks the promise");
}

const isRatio = (objective) => tables.methods[objective.method].byRatio;

function breaks(objective, good, bad) {
  if (!isRatio(objective)) return bad > 0n;
  return good * PARTS_PER_BILLION < (good + bad) * objective.targetPpb;
}

/** The maximal runs of what is true, as pairs of start and end. */
function runsOf(flags) {
  const found = [];
  flags.forEach((flag, at) => {
    if (flag && at > 0 && flags[at - 1]) found.at(-1)[1] = at + 1;
    else if (flag) found.push([at, at + 1]);
  });
  return found;
}
