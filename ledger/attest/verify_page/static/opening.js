// An opening: counts and salts, from which root, totals, states and credit are worked out again.

import { basesOf } from "./bases.js";
import { creditTrace, judge } from "./credit.js";
import { blockHashes, telemetryRootOf } from "./formats.js";
import { countedIncidents } from "./incidents.js";
import { Refusal, require } from "./refusal.js";
import { requireSame } from "./case.js";
import { leftOut } from "./settled.js";

/** The opened counts give the sealed root, the totals, the states and the credit of the statement. */
export function opening(found, document) {
  const { issued, agreement } = found;
  require(document.statement_id === issued.statement_id, "the opening is of another statement");
  const windows = windowsOpened(found, document);
  leftOut(found).forEach((out, index) => {
    const said = out ? "an exclusion covers" : "no exclusion covers";
    const message = `window ${index} is ${document.windows[index].state} by the opening, and ${said} it whole`;
    require(windows[index].excluded === out, message);
  });
  const blocks = blockHashes(found.sealKey, windows, document.salts.map(BigInt));
  const root = String(telemetryRootOf(found.sealKey, windows.length, blocks));
  require(root === issued.telemetry_root, "the opened counts do not give the sealed telemetry root");
  const coverage = coverageOf(windows);
  const due = BigInt(coverage.windows - coverage.excluded) * agreement.floorBps;
  const withheld = BigInt(coverage.observed) * 10_000n < due;
  const results = agreement.objectives.map((objective, at) => resultOf(objective, windows, at, withheld));
  require(results.every((result, at) =>
    sameResult(result, found.results[at]),
  ), "the opened counts give other totals or states");
  const incidents = agreement.compensation.impact ? countedIncidents(found, windows) : [];
  const trace = withheld ? {} : creditTrace(agreement.compensation, basesOf(found), results, incidents).document;
  requireSame(issued.trace, trace, "the opened counts give another credit");
  for (const [name, count] of Object.entries(coverage)) {
    require(count === issued[name], `the opened counts give another number of ${name} windows`);
  }
  return `${windows.length} opened windows give the sealed root, every total, state and the credit`;
}

function windowsOpened({ agreement, windows }, document) {
  const ids = agreement.objectives.map((objective) => objective.id);
  require(document.windows.length === windows.length, `the period has ${windows.length} windows`);
  return document.windows.map(({ state, cells }) => {
    const keys = Object.keys(cells);
    require(keys.length === ids.length && ids.every((id) => id in cells), "a window's cells are not the objectives'");
    const [good, bad] = ["good", "bad"].map((side) => ids.map((id) => BigInt(cells[id][side])));
    const empty = [...good, ...bad].every((count) => count === 0n);
    if (state !== "observed" && !empty) {
      throw new Refusal(`a window in state ${state} has counts; only observed windows count`);
    }
    if (ids.length > 4) throw new Refusal("a window has a good and a bad count for each of at most 4 objectives");
    return { good, bad, observed: state === "observed", excluded: state === "excluded", empty };
  });
}

function coverageOf(windows) {
  return {
    windows: windows.length,
    observed: windows.filter((window) => window.observed).length,
    excluded: windows.filter((window) => window.excluded).length,
    idle: windows.filter((window) => window.observed && window.empty).length,
  };
}

/** What the methods that a circuit attests have in common: a sum over the windows. */
function resultOf(objective, windows, at, withheld) {
  const [good, bad] = ["good", "bad"].map((side) => windows.reduce((total, window) => total + window[side][at], 0n));
  const valid = good + bad;
  const state = withheld ? "withheld" : judge(objective, good, valid, 0n, valid);
  return { objective, good, valid, undecided: 0n, state };
}

function sameResult(one, other) {
  return ["good", "valid", "undecided", "state"].every((name) => one[name] === other[name]);
}
