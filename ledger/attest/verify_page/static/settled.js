// Checks of the statement itself: its period, what was sealed and when, its verdict and its credit.

import { acceptsUntilNs } from "./agreement.js";
import { basesOf } from "./bases.js";
import { creditTrace, judge } from "./credit.js";
import { DAY_NS, SECOND_NS } from "./dates.js";
import { honoured } from "./exclusions.js";
import { BLOCK_WINDOWS, telemetryRootOf } from "./formats.js";
import { statedIncidents } from "./incidents.js";
import { covers, interval, union } from "./interval.js";
import { without } from "./json.js";
import { formatMinorUnits } from "./money.js";
import { unitOf } from "./objectives.js";
import { periodName } from "./periods.js";
import { require } from "./refusal.js";
import { pick, requireLogged } from "./logged.js";
import { requireSame } from "./case.js";
import { tables } from "./tables.js";

const ON_TIME_NS = 3600n * SECOND_NS;
const ANNOUNCED = ["exclusion_id", "clause", "from_ns", "to_ns", "announced_at_ns", "approved_by"];
const FROM_INCIDENTS = [
  "incidents",
  "impact_amount",
  "rules",
  "combined_amount",
  "scopes",
  "caps",
  "capped_amount",
  "payable",
  "credit",
];

export function period(found) {
  const { issued, windows } = found;
  const { startNs, endNs } = found.period.interval;
  const name = periodName(found.period);
  require(issued.period === name, `the period is spelled ${name}`);
  require(issued.start_ns === String(startNs), "start_ns is not the start of the period in its zone");
  require(issued.end_ns === String(endNs), "end_ns is not the end of the period in its zone");
  require(issued.windows === windows.length, `the period has ${windows.length} windows`);
  requireAccepting(found);
  requireExcluded(found);
  require(issued.idle <= issued.observed && issued.observed <= windows.length, "window counts do not add up");
  return `${name} in ${found.period.zone}, ${windows.length} windows`;
}

/** Throws where claims and facts are taken until another instant than the terms say. */
function requireAccepting({ agreement, issued, period: ofTerms }) {
  const said = issued.accepts_until_ns;
  if (said === undefined && agreement.document.settlement?.deadline === undefined) return;
  const until = String(acceptsUntilNs(agreement, ofTerms));
  require(said === until, `accepts_until_ns is not ${until}, until when the terms take claims and facts`);
}

/** Throws where windows are left out for which no exclusion stands, or none that the terms allow. */
function requireExcluded(found) {
  const { agreement, issued } = found;
  const terms = agreement.exclusions;
  const listed = issued.exclusions ?? [];
  require(terms.classes.size + terms.carveOuts.size > 0 ||
    !listed.length, "the agreement has no clause that excludes time");
  require(new Set(listed.map((each) => each.exclusion_id)).size === listed.length, "an exclusion is listed twice");
  const allowed = honoured(terms, agreement.timezone, listed, found.period.interval);
  for (const each of listed.filter(({ honoured: part }) => part !== null)) {
    const claimed = claimedBy(each);
    const most = allowed.get(each.exclusion_id);
    const message = `the terms do not allow all that the exclusion ${each.exclusion_id} takes out`;
    require(most !== undefined && most !== null && covers(most, claimed), message);
  }
  const excluded = leftOut(found).filter((out) => out).length;
  const message = `${issued.excluded} windows are left out, and exclusions cover ${excluded} whole`;
  require(issued.excluded === excluded, message);
}

/** Of each window, whether what the statement honours covers it whole: proofs count such windows, and no more. */
export function leftOut({ issued, windows }) {
  const honouredParts = (issued.exclusions ?? []).filter((each) => each.honoured !== null).map(claimedBy);
  const takenOut = union(honouredParts);
  return windows.map((window) => takenOut.some((part) => covers(part, window)));
}

const claimedBy = ({ honoured: part }) => interval(BigInt(part.from_ns), BigInt(part.to_ns));

export function telemetry(found) {
  const { bundle, issued, windows } = found;
  const sealed = bundle.telemetry;
  if (found.reasons.length) {
    require(sealed === null && !bundle.seals.length, "terms without a circuit have nothing sealed");
    require(issued.seal_key === null && issued.telemetry_root === null, "the statement names a seal");
    return "nothing is sealed under these terms";
  }
  require(sealed !== null, "the telemetry root is missing");
  const blocks = sealed.blocks.map(BigInt);
  const root = String(telemetryRootOf(found.sealKey, windows.length, blocks));
  require(sealed.windows === windows.length, "the root is for another number of windows");
  require(sealed.root === root, "the blocks do not give this root");
  require(issued.telemetry_root === root, "the statement names another root");
  require(issued.seal_key === String(found.sealKey), "the statement names another seal key");
  require(bundle.seals.length === blocks.length, `${blocks.length} blocks need as many seals`);
  bundle.seals.forEach(({ payload }, index) => {
    const first = index * BLOCK_WINDOWS;
    const expected = {
      sla_id: found.slaText,
      seal_key: String(found.sealKey),
      block: index,
      block_hash: String(blocks[index]),
      first_window: first,
      windows: Math.max(0, Math.min(BLOCK_WINDOWS, windows.length - first)),
    };
    requireSame(
      pick(payload, Object.keys(expected)),
      expected,
      `seal ${index} does not seal block ${index} of this period`,
    );
  });
  return `${blocks.length} sealed block(s) give the telemetry root`;
}

/** No block was sealed before it was over; how late the seals came, and which were replaced. `onTime`: a PASS. */
export function sealTimes(found) {
  const {
    bundle,
    windows,
    period: { interval: whole },
    agreement,
  } = found;
  const replaced = [];
  const late = [];
  bundle.seals.forEach(({ header, payload }, block) => {
    const last = windows.slice(block * BLOCK_WINDOWS, (block + 1) * BLOCK_WINDOWS).at(-1);
    const endNs = last?.endNs ?? whole.endNs;
    const recordedNs = BigInt(header.recorded_at_ns);
    require(recordedNs >= endNs, `block ${block} was sealed before its last window was over`);
    if ("reason" in payload) replaced.push(`block ${block} was sealed anew (${payload.reason})`);
    else late.push(recordedNs - endNs - BigInt(agreement.graceSeconds) * SECOND_NS);
  });
  const latest = late.length ? late.reduce((most, each) => (each > most ? each : most)) : null;
  const onTime = latest !== null && latest <= ON_TIME_NS && !replaced.length;
  return {
    onTime,
    detail: [...(latest === null ? [] : [lateness(latest > 0n ? latest : 0n)]), ...replaced].join("; "),
  };
}

function lateness(lateNs) {
  const seconds = lateNs / SECOND_NS;
  if (lateNs <= ON_TIME_NS) return `by the log's clock every block was sealed within ${seconds} s after its grace`;
  const late = lateNs >= 2n * DAY_NS ? `${lateNs / DAY_NS} days` : `${seconds} s`;
  return `by the log's clock a block was sealed ${late} after its grace, when its counts may have been known for long`;
}

/** States and credit follow from the statement's own totals, and a missing proof has its reason. */
export function verdict(found) {
  const { issued, bundle, reasons, withheld } = found;
  require(issued.attestable === !reasons.length, "attestable is not what the terms say");
  requireSame(issued.unattested_reasons, reasons, "the reasons without a proof are not those of the terms");
  require(issued.state === (withheld ? "withheld" : "settled"), "the state does not follow from coverage");
  const proofDue = !reasons.length && !withheld;
  const due = proofDue ? "this statement must have a proof" : "this statement cannot have a proof";
  require((bundle.proof !== null) === proofDue, due);
  const secondDue = proofDue && found.agreement.compensation.impact !== null;
  const second = secondDue
    ? "this statement must have a proof of its incident credit, which alone is the credit"
    : "a proof of an incident credit belongs to a proved statement whose terms pay for incidents";
  require("incident_proof" in bundle === secondDue, second);
  for (const name of proofDue ? [] : ["context", "base", "credit_salt", "anchor"]) {
    require(bundle[name] === null, `${name} belongs to a proof, and there is none`);
  }
  for (const result of found.results) requireState(result, withheld);
  if (withheld) {
    require(issued.credit === null && !Object.keys(issued.trace).length, "a withheld statement has no credit");
    return `withheld: ${issued.observed} of ${issued.windows} windows observed; no verdict, no credit, no proof`;
  }
  return credit(found);
}

function requireState(result, withheld) {
  const { objective, good, valid, undecided, state } = result;
  require(good + undecided <= valid, `${objective.id} has more good requests than valid ones`);
  const possible = withheld ? ["withheld"] : statesOf(result);
  const message = `${objective.id} is ${possible.join(" or ")} by its counts, not ${state}`;
  require(possible.includes(state), message);
}

/** What an objective may be by its counts: where its method counts something else, its volume is not known. */
function statesOf({ objective, good, valid, undecided }) {
  const known = unitOf(objective) === tables.indicators[objective.indicator].unit || !objective.minimumValid;
  const volumes = known ? [valid] : [objective.minimumValid, 0n];
  return [...new Set(volumes.map((volume) => judge(objective, good, valid, undecided, volume)))];
}

function credit(found) {
  const { issued, agreement, results } = found;
  const terms = agreement.compensation;
  const bases = basesOf(found);
  if (terms.paysForIncidents && !terms.simple) {
    return creditWithIncidents(issued, creditTrace(terms, bases, results), terms.currency);
  }
  const incidents = terms.impact ? statedIncidents(found) : [];
  const trace = creditTrace(terms, bases, results, incidents);
  requireSame(issued.trace, trace.document, "the steps to the credit are not those of the terms");
  const expected = { currency: terms.currency, minor_units: String(trace.credit) };
  requireSame(issued.credit, expected, `the credit by these totals is ${trace.credit} minor units`);
  const states = results.map((each) => `${each.objective.id} ${each.good}/${each.valid} ${each.state}`).join(", ");
  const counted = terms.impact ? `${incidents.length} incident(s) as stated; ` : "";
  const amount = `${formatMinorUnits(trace.credit, terms.currency)} ${terms.currency}`;
  return `${states}; ${counted}credit ${amount} by the terms`;
}

/** What totals alone say of a credit that incidents add to: its tiers, and that it is not below them. */
function creditWithIncidents(issued, trace, currency) {
  const members = Object.keys(trace.document).sort();
  requireSame(Object.keys(issued.trace).sort(), members, "the steps to the credit are not those of the terms");
  const same = members.filter((name) => !FROM_INCIDENTS.includes(name));
  requireSame(
    pick(issued.trace, same),
    pick(trace.document, same),
    "the tier steps of the credit are not those of the terms",
  );
  requireSame(ruled(issued.trace), ruled(trace.document), "the rules for lost time are not those of the terms");
  const found = issued.credit;
  require(found !== null && found.currency === currency, "the credit is missing or in another money");
  require(issued.trace.credit === found.minor_units, "the credit is not the last of its own steps");
  require(BigInt(found.minor_units) >= trace.credit, `the tiers alone give ${trace.credit} minor units`);
  return "states and tiers follow from the totals by the terms; the incidents stand as stated";
}

/** Rules without what their incidents come to. */
function ruled({ rules = [] }) {
  const fits = Array.isArray(rules) && rules.every((rule) => typeof rule === "object" && rule !== null);
  require(fits && !rules.some(Array.isArray), "the rules of the trace are no list of steps");
  return rules.map((rule) => without(without(rule, "incidents"), "amount"));
}

/** The honoured exclusions of maintenance classes, which the terms want announced. */
export function announced({ issued, agreement }) {
  return (issued.exclusions ?? []).filter((each) => each.honoured && agreement.exclusions.classes.has(each.clause));
}

/** Every announcement that is given is in the log, in the statement's words; `late`: those that no entry shows. */
export function announcements(found) {
  const listed = new Map(announced(found).map((each) => [each.exclusion_id, each]));
  const logged = new Map();
  for (const event of found.bundle.announcements ?? []) {
    const name = event.payload.exclusion_id;
    const message = `an announcement of ${name} is given, and the statement does not exclude for it`;
    require(listed.has(name), message);
    requireSame(pick(event.payload, ANNOUNCED), pick(listed.get(name), ANNOUNCED), `${name} was logged in other words`);
    requireLogged(event, found.checkpoint, "exclusion_recorded", `exclusions/${found.slaText}`, event.header.version);
    logged.set(name, BigInt(event.header.recorded_at_ns));
  }
  const late = [...listed.values()].filter(
    ({ exclusion_id: name, from_ns: from }) => !(logged.get(name) <= BigInt(from)),
  );
  if (!late.length) {
    return {
      late,
      detail: `${listed.size} exclusion(s) for maintenance were logged before they began, by the log's clock`,
    };
  }
  const more = late.length > 1 ? ` and ${late.length - 1} more` : "";
  return {
    late,
    detail: `no entry shows that ${late[0].exclusion_id}${more} was logged before it began: that it was planned is the issuer's word`,
  };
}
