// Where an objective's counts come from, if not from the request log or the sample log.

import { fail } from "./refusal.js";
import { tables } from "./tables.js";

const INDICATORS = {
  outages: ["availability"],
  counters: ["availability", "error_rate"],
  histograms: ["first_token_latency", "response_latency"],
  own_violations: ["recovery_time"],
};
const MEMBER_OF = { counters: "counters", histogram: "histograms" };
const SEEN_ONE_BY_ONE = {
  where: "selects requests one by one",
  repeat_window: "looks at failed requests one by one",
  grades: "grades requests one by one",
};

/** The source of a shape-checked objective: its `kind`, and the unit of one count where it is not the indicator's. */
export function readSource(at, item, baseSeconds) {
  const kind = item.source;
  for (const [member, neededBy] of Object.entries(MEMBER_OF)) {
    if (member in item === (kind === neededBy)) continue;
    const said = member in item ? `only source: ${neededBy} has it` : `is missing: source: ${neededBy} needs it`;
    throw fail(`${at}.${member}`, said);
  }
  if (kind === undefined)
    return { kind: tables.indicators[item.indicator].sampled ? "samples" : "requests", unit: null };
  if (!INDICATORS[kind].includes(item.indicator)) {
    throw fail(`${at}.source`, `${kind} says nothing of ${item.indicator}, but of ${INDICATORS[kind].join(", ")}`);
  }
  for (const [member, what] of Object.entries(SEEN_ONE_BY_ONE)) {
    if (member in item) throw fail(`${at}.${member}`, `${what}, and source: ${kind} has none; leave it out`);
  }
  if (kind === "outages" && baseSeconds % 60) {
    throw fail(
      `${at}.source`,
      `outages are counted in whole minutes, which windows of ${baseSeconds} s do not have; agree on the window PT1M`,
    );
  }
  if (kind === "own_violations" && !("at_most" in (item.measure ?? {}))) {
    throw fail(`${at}.measure`, "say at_most, the seconds within which service is back");
  }
  if (item.counters && "good" in item.counters === "bad" in item.counters) {
    throw fail(`${at}.counters`, "say good or bad beside total, one of the two");
  }
  return { kind, unit: kind === "outages" ? "minutes" : null };
}
