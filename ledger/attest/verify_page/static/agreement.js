// A signed agreement, read from its document: every rule that its shape cannot say, and its numbers as exact integers.

import { dayStartNs, instantText, loadZone, localDay } from "./calendar.js";
import { canonicalBytes, without } from "./json.js";
import { concat, fromHex, utf8 } from "./bytes.js";
import { NO_CAP, readCompensation } from "./compensation.js";
import {
  SECOND_NS,
  addMonths,
  civil,
  dateText,
  lengthDays,
  lengthText,
  parseDate,
  parsePeriodLength,
  parseTimeOfDay,
  parseWindowSeconds,
  sameLength,
} from "./dates.js";
import { readExclusionTerms } from "./exclusions.js";
import { sha256 } from "./hashes.js";
import { requireHoldable } from "./largest.js";
import { percentBasisPoints } from "./money.js";
import { readObjectives } from "./objectives.js";
import { PeriodGrid, countWindows, mostWindows, periodName } from "./periods.js";
import { Refusal, convert, fail } from "./refusal.js";
import { tables } from "./tables.js";

const MAX_DAYS = 36_600;
const MAX_HEARTBEAT_S = 86_400;
const DAY_S = 86_400;
const DEFAULT_DEADLINE = { kind: "days_after_period", count: 30 };

export { NO_CAP };

/** The terms of a document whose shape was checked, in force until a day (null: as long as they say); throws. */
export function readAgreement(document, endedOn = null) {
  const read = (path, how) =>
    convert(
      path,
      path.split(".").reduce((value, key) => value[key], document),
      how,
    );
  const windowSeconds = read("window", parseWindowSeconds);
  const periodLength = read("period", parsePeriodLength);
  const objectives = readObjectives(document.objectives, windowSeconds);
  const graceSeconds = read("grace", parseWindowSeconds);
  const closesS = readClosing(document.closing, graceSeconds);
  const unsigned = canonicalBytes(without(document, "signatures"));
  const terms = {
    document,
    objectives,
    windowSeconds,
    periodLength,
    graceSeconds,
    nonce: fromHex(document.nonce.slice(2)),
    issuer: readParty(document.parties.issuer),
    customer: readParty(document.parties.customer),
    collectorKey: readPoint(document.collector.babyjubjub_public_key),
    signingMessage: concat(utf8("sla-ledger/agreement/v1\n"), unsigned),
    docSha256: sha256(unsigned),
    from: read("effective.from", parseDate),
    until: read("effective.until", parseDate),
    timezone: read("timezone", (name) => (loadZone(name), name)),
    floorBps: read("coverage_floor", percentBasisPoints),
    exclusions: readExclusionTerms(document),
    compensation: readCompensation(document.compensation, objectives, document.business_level),
    anchor: read("anchor" in document ? "anchor" : "effective.from", parseDate),
    step: "step" in document ? read("step", (text) => rollingStep(periodLength, text)) : periodLength,
    dayStartS: "day_start" in document ? read("day_start", parseTimeOfDay) : 0,
    keepsParts: document.partial_periods === "prorate",
  };
  terms.probe = readProbe(document.probe, terms.collectorKey);
  checkHeartbeat(document.source);
  checkExclusions(document.exclusions);
  checkTerm(terms);
  terms.whole = gridOf(terms, null);
  if (terms.whole.rolling) checkRolling(terms);
  terms.mostWindows = mostWindows(terms.whole, windowSeconds);
  checkLengths(terms);
  checkAlignment(terms);
  if (document.settlement?.mode === "claim") checkDeadline(document.settlement, terms, closesS ?? graceSeconds);
  requireHoldable(terms.compensation, terms.mostWindows, windowSeconds);
  return { ...terms, periods: endedOn === null ? terms.whole : gridOf(terms, endedOn) };
}

/** The first instant of a local day of an agreement. */
export function dayNs(terms, day) {
  return dayStartNs(day, loadZone(terms.timezone), terms.dayStartS);
}

/** The intervals of the N equal windows of a period. */
export function windowsOf(terms, period) {
  const step = BigInt(terms.windowSeconds) * SECOND_NS;
  return Array.from({ length: countWindows(period, terms.windowSeconds) }, (_, at) => {
    const startNs = period.interval.startNs + BigInt(at) * step;
    return { startNs, endNs: startNs + step };
  });
}

function gridOf(terms, endedOn) {
  const step = terms.step;
  return new PeriodGrid({
    first: terms.from,
    until: endedOn ?? terms.until,
    length: terms.periodLength,
    zone: terms.timezone,
    anchor: terms.anchor,
    step,
    dayStartS: terms.dayStartS,
    keepsFirst: terms.keepsParts,
    // An end inside a period splits it, whatever the terms say of their own dates.
    keepsLast: terms.keepsParts || (endedOn !== null && sameLength(step, terms.periodLength)),
  });
}

function readParty(document) {
  return { key: fromHex(document.ed25519_public_key), address: document.evm_address };
}

export const readPoint = ({ x, y }) => [BigInt(x), BigInt(y)];

function readProbe(document, collectorKey) {
  if (document === undefined) return null;
  const key = readPoint(document.babyjubjub_public_key);
  if (key[0] === collectorKey[0] && key[1] === collectorKey[1]) {
    throw fail("probe.babyjubjub_public_key", "it is the collector's key; a second signer has a key of its own");
  }
  return { name: document.name, key, required: document.signature === "required" };
}

function readClosing(said, graceSeconds) {
  if (said === undefined || said.when === "grace") return null;
  const atLatest = convert("closing.at_latest", said.at_latest, parseWindowSeconds);
  if (atLatest <= graceSeconds) {
    throw fail("closing.at_latest", `${said.at_latest} after the end is not later than the grace of ${graceSeconds} s`);
  }
  return atLatest;
}

function rollingStep(length, text) {
  const step = parsePeriodLength(text);
  const months = [length, step].some(({ unit }) => unit === "M");
  let fits = length.unit === "M" && step.unit !== "M" && lengthDays(step) === 1;
  if (!months) fits = lengthDays(length) % lengthDays(step) === 0;
  else if (length.unit === step.unit) fits = length.count % step.count === 0;
  if (!fits) {
    throw new Refusal(
      `a period of ${lengthText(length)} is no whole number of steps of ${lengthText(step)}; take one that fills it, such as P1D`,
    );
  }
  // Seven days and a week are the same step.
  return !months && lengthDays(length) === lengthDays(step) ? length : step;
}

function checkHeartbeat(source) {
  if (!("heartbeat" in source)) return;
  if (source.coverage !== "heartbeat") {
    throw fail("source.heartbeat", `has no effect with coverage ${source.coverage}; leave it out`);
  }
  if (convert("source.heartbeat", source.heartbeat, parseWindowSeconds) > MAX_HEARTBEAT_S) {
    throw fail("source.heartbeat", `${source.heartbeat} is more than a day; a source that is alive says so sooner`);
  }
}

function checkExclusions(documents) {
  const [ids, codes] = [new Set(), new Set()];
  documents.forEach((item, index) => {
    if (ids.has(item.id) || item.error_codes.some((code) => codes.has(code))) {
      throw fail(`exclusions[${index}]`, `'${item.id}' has its id or error codes of another clause; name each once`);
    }
    ids.add(item.id);
    item.error_codes.forEach((code) => codes.add(code));
  });
}

function checkTerm({ from, until, anchor }) {
  for (const [field, day] of [
    ["effective.from", from],
    ["effective.until", until],
    ["anchor", anchor],
  ]) {
    const [year] = civil(day);
    if (year <= 1970 || year >= 2262) throw fail(field, `${dateText(day)} must lie in the years 1971 to 2261`);
  }
  if (until <= from) {
    throw fail("effective.until", `${dateText(until)} is not later than effective.from, ${dateText(from)}`);
  }
  if (until - from > MAX_DAYS) {
    throw fail("effective.until", `${dateText(until)} is more than 100 years after ${dateText(from)}`);
  }
}

function checkRolling({ document, keepsParts, periodLength }) {
  if (document.compensation.rules.length) {
    throw fail(
      "compensation.rules",
      `periods of ${lengthText(periodLength)} every ${document.step} overlap, so that one failure would be paid in each`,
    );
  }
  if (keepsParts) throw fail("partial_periods", `prorate: periods that overlap (step ${document.step}) have no parts`);
}

/** That every promise can be judged: what a method looks at fits the longest period. */
function checkLengths({ objectives, document, mostWindows: most, windowSeconds, periodLength }) {
  const longest = most * windowSeconds;
  objectives.forEach((each, index) => {
    for (const [field, seconds] of secondsNeeded(each)) {
      if (seconds <= longest) continue;
      throw fail(
        `objectives[${index}].${field}`,
        `takes ${seconds} s, which is longer than every period (${lengthText(periodLength)}, at most ${longest} s), so ` +
          "nothing could ever be counted; agree on less",
      );
    }
  });
  document.compensation.rules.forEach((rule, index) => {
    if (!("longer_than" in rule) || parseWindowSeconds(rule.longer_than) < longest) return;
    throw fail(`compensation.rules[${index}].longer_than`, `no incident is longer than ${rule.longer_than}`);
  });
}

function* secondsNeeded({ windowSeconds, repeatSeconds, down, slices }) {
  if (windowSeconds !== null) yield ["window", windowSeconds];
  if (repeatSeconds !== null) yield ["repeat_window", repeatSeconds];
  if (down) {
    yield ["interval", down.intervalSeconds];
    yield ["minimum_run", down.minimumRun * down.intervalSeconds];
  }
  if (slices) {
    yield ["slice.window", slices.windowSeconds];
    yield ["slice.consecutive", slices.windowSeconds + (slices.consecutive - 1) * slices.stepSeconds];
  }
}

/** That intervals begin where the terms say so, in every period. */
function checkAlignment(terms) {
  terms.objectives.forEach((objective, index) => {
    const said = terms.document.objectives[index];
    const [aligned, at] = [said.aligned ?? "period", `objectives[${index}]`];
    if (!objective.down || (aligned === "period" && (said.partial ?? "drop") === "drop")) return;
    const seconds = objective.down.intervalSeconds;
    if (aligned === "utc" && DAY_S % seconds) {
      throw fail(`${at}.aligned`, `utc: intervals of ${seconds} s do not fill a day; take one that does`);
    }
    for (const period of terms.whole.all()) checkIntervals(terms, period, { said, at, aligned, seconds });
  });
}

function checkIntervals(terms, period, { said, at, aligned, seconds }) {
  const step = BigInt(seconds) * SECOND_NS;
  const { startNs, endNs } = period.interval;
  if (said.partial === "none" && (endNs - startNs) % step) {
    throw fail(`${at}.partial`, `none: of the period ${periodName(period)} a part is left over after whole intervals`);
  }
  if (aligned === "utc" && startNs % step) {
    throw fail(`${at}.aligned`, `utc: the period ${periodName(period)} starts at ${instantText(startNs)}`);
  }
  for (let [day, at2] = [period.first, startNs]; aligned === "day" && at2 < endNs; day += 1, at2 = dayNs(terms, day)) {
    if ((at2 - startNs) % step) {
      throw fail(`${at}.aligned`, `day: intervals of ${seconds} s do not begin with the day of ${dateText(day)}`);
    }
  }
}

/** The first instant at which claims and facts of a period are too late. */
export function acceptsUntilNs(terms, period) {
  const deadline = terms.document.settlement?.deadline ?? DEFAULT_DEADLINE;
  return dayNs(terms, deadlineDay(deadline, terms, period, period.interval.endNs));
}

/** That no claim is too late before the first statement that it could stand on. */
function checkDeadline({ deadline }, terms, waitsS) {
  if (deadline === undefined)
    throw fail("settlement.deadline", "is missing: claims need one, such as 30 days_after_period");
  for (const period of terms.whole.all()) {
    const { startNs, endNs } = period.interval;
    const incidentEndNs = startNs + BigInt(terms.windowSeconds) * SECOND_NS;
    const tooLate = dayNs(terms, deadlineDay(deadline, terms, period, incidentEndNs));
    if (tooLate <= endNs + BigInt(waitsS) * SECOND_NS) {
      throw fail(
        "settlement.deadline",
        `comes before the first statement: of ${periodName(period)} claims would be too late from ${instantText(tooLate)} on`,
      );
    }
  }
}

function deadlineDay({ kind, count }, terms, period, incidentEndNs) {
  const localOf = (ns) => localDay(ns, terms.timezone, terms.dayStartS);
  if (kind === "billing_cycles") return terms.whole.cyclesAfter(period, count);
  if (kind === "months_after_period") return addMonths(localOf(period.interval.endNs), count);
  if (kind === "days_after_period") return localOf(period.interval.endNs) + count;
  // The day on which it ended does not count.
  return localOf(incidentEndNs - 1n) + count + 1;
}
