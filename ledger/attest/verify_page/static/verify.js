// Verifying a bundle offline: every check in its order, every pin, and what neither can establish. The same lines and
// the same verdict as `sla-ledger verify` (docs/attestation-format.md, section 12).

import { Case } from "./case.js";
import { parseCanonical, parseJson } from "./json.js";
import * as logged from "./logged.js";
import { unknownMembers } from "./members.js";
import * as parties from "./parties.js";
import { opening as checkOpening } from "./opening.js";
import { pinLines } from "./pins.js";
import * as proved from "./proved.js";
import { Refusal } from "./refusal.js";
import * as second from "./second_proof.js";
import * as settled from "./settled.js";
import { rootChecks } from "./roots.js";
import { readShape } from "./shape.js";
import { tables } from "./tables.js";

export const MAX_BUNDLE_BYTES = 4 * 1024 * 1024;
export const MAX_TRUST_BYTES = 64 * 1024;

const ALWAYS = [
  ["issuer signature", parties.issuerSignature],
  ["agreement", parties.agreement],
  ["period", settled.period],
  ["log checkpoint", logged.checkpoint],
  ["log inclusion", logged.inclusion],
  ["restatement", logged.restatement],
  ["telemetry", settled.telemetry],
  ["verdict", settled.verdict],
];
const PROVED = [
  ["context", proved.context],
  ["terms", proved.terms],
  ["telemetry signal", proved.telemetrySignal],
  ["base", proved.base],
  ["summary", proved.summary],
  ["credit", proved.credit],
  ["verification key", proved.key],
  ["proof", proved.proof],
  ["anchor", proved.anchor],
];

const INCIDENTS = [
  ["incidents", second.incidents],
  ["incident credit", second.total],
  ["incident key", second.key],
  ["incident proof", second.proof],
];

/** A bundle from its exact canonical bytes; throws BadInput. */
export const readBundle = (data) => readShape(tables.schemas.bundle, parseCanonical(data, MAX_BUNDLE_BYTES), "bundle");

/** An opening, a trust file; throw BadInput. */
export const readOpening = (data) => readShape(tables.schemas.opening, parseJson(data, MAX_BUNDLE_BYTES), "opening");
export const readTrust = (data) => readShape(tables.schemas.trust, parseJson(data, MAX_TRUST_BYTES), "trust file");

/**
 * The report on a bundle that `readBundle` gave: `lines` of check, outcome and detail, and what is `notEstablished`.
 * Never throws. `said(line)` is called, and waited for, as each line is there.
 */
export async function verifyBundle(bundle, trust = null, opening = null, said = async () => {}) {
  const found = new Case(bundle);
  const report = { lines: [], notEstablished: [], devKey: underDevKey(bundle) };
  for await (const line of linesOf(found, trust, opening)) {
    report.lines.push(line);
    await said(line);
  }
  const passed = new Set(report.lines.filter((line) => line.outcome === "PASS").map((line) => line.check));
  report.notEstablished = notEstablished(bundle, {
    opened: opening !== null,
    witnessed: passed.has("witness quorum"),
    ofTenant: passed.has("pin: tenant"),
  });
  return report;
}

/**
 * How `sla-ledger verify` ends: 0 all checks hold against the pins, 1 one failed, 3 consistent, but something is
 * assumed or (here alone) a check that the command makes was not made.
 */
export function exitCode({ lines }, acceptDev) {
  if (lines.some((line) => line.outcome === "FAIL")) return 1;
  const open = lines.filter((line) => line.outcome === "ASSUMED" || line.notEvaluated).map((line) => line.check);
  return open.some((check) => !(acceptDev && check === "dev key")) ? 3 : 0;
}

async function* linesOf(found, trust, opening) {
  const { bundle } = found;
  for (const [check, run] of ALWAYS) yield await lineOf(check, () => run(found));
  if (bundle.telemetry !== null) {
    yield await lineOf("collector signature", () => parties.collectorSignature(found));
    yield await openLine(
      "seal times",
      () => settled.sealTimes(found),
      ({ onTime }) => onTime,
    );
  }
  yield* announcementLines(found);
  if ("notice" in bundle || bundle.ended_by?.kind === "Termination") {
    yield await openLine(
      "notice",
      () => logged.notice(found),
      ({ inTime }) => inTime,
    );
  }
  if (parties.concernsProbe(found)) {
    const line = await lineOf("probe signature", () => parties.probeSignature(found));
    yield line.outcome === "PASS" && parties.probeDidNotSign(found) ? { ...line, outcome: "NOT CHECKED" } : line;
  }
  if (bundle.proof !== null) {
    const checks = "incident_proof" in bundle ? [...PROVED, ...INCIDENTS] : PROVED;
    for (const [check, run] of checks) {
      yield check === "anchor" && publishedAlone(bundle) ? NOT_RECORDED : await lineOf(check, () => run(found));
    }
    if (underDevKey(bundle)) {
      yield {
        check: "dev key",
        outcome: "ASSUMED",
        detail: "the key was made on one machine: the issuer can forge this",
      };
    }
  } else {
    yield { check: "proof", outcome: "NOT CHECKED", detail: `the statement is unproved: ${whyUnproved(found.issued)}` };
  }
  if (opening !== null) yield await lineOf("opening", () => checkOpening(found, opening));
  else yield { check: "opening", outcome: "NOT CHECKED", detail: "no counts were given; the totals stand as stated" };
  for (const { check, run, pin } of rootChecks(found, trust)) {
    yield await lineOf(check, run);
    yield pin;
  }
  yield* pinLines(bundle, trust);
  if (trust?.witnesses) yield await lineOf("witness quorum", () => logged.witnessQuorum(found, trust.witnesses));
  for (const path of unknownMembers({ bundle, trust, opening })) {
    yield notEvaluatedLine(path, "this page is older than what this member says");
  }
}

const NOT_RECORDED = {
  check: "anchor",
  outcome: "NOT CHECKED",
  detail: "the registry was not asked to check and record it: its batch root alone is published",
};

/** Whether a statement is on its registry's chain by a batch root alone. */
function publishedAlone({ anchor, context, roots = [] }) {
  const atHome = ({ chain_id, registry }) => chain_id === context.chain_id && registry === context.registry;
  return anchor === null && context !== null && roots.some(atHome);
}

async function* announcementLines(found) {
  if (!found.issued.exclusions?.length && !("announcements" in found.bundle)) return;
  const line = await openLine(
    "announcements",
    () => settled.announcements(found),
    ({ late }) => !late.length,
  );
  if (line.outcome === "FAIL" || settled.announced(found).length) yield line;
}

async function lineOf(check, run) {
  try {
    return { check, outcome: "PASS", detail: await run() };
  } catch (error) {
    if (error instanceof Refusal) return { check, outcome: "FAIL", detail: error.message };
    // What cannot be evaluated does not hold.
    return {
      check,
      outcome: "FAIL",
      detail: `cannot be evaluated (${error?.name ?? "error"}: ${error?.message ?? error})`,
    };
  }
}

/** A check that `sla-ledger verify` makes and this page does not. */
function notEvaluatedLine(check, why) {
  return { check, outcome: "NOT CHECKED", detail: `${why}: ask \`sla-ledger verify\``, notEvaluated: true };
}

/** The line of a check that may hold and still leave something open. */
async function openLine(check, run, closed) {
  let result;
  const line = await lineOf(check, () => {
    result = run();
    return result.detail;
  });
  return line.outcome === "PASS" && !closed(result) ? { ...line, outcome: "NOT CHECKED" } : line;
}

function underDevKey({ proof, incident_proof: second }) {
  return proof !== null && [proof, second].some((each) => each?.manifest.dev_unsafe);
}

function whyUnproved(issued) {
  if (issued.state === "withheld") return `withheld, ${issued.observed} of ${issued.windows} windows were observed`;
  return issued.unattested_reasons.join("; ") || "no reason is given";
}

/** What a reader must find out elsewhere. */
function notEstablished(bundle, { opened, witnessed, ofTenant }) {
  const found = [];
  if (bundle.anchor !== null) {
    found.push("whether the anchoring transaction succeeded, in which block it stands, and whether that is final");
  }
  const chains = (bundle.roots ?? []).map((root) => root.chain_id);
  if (chains.length) found.push(`whether its batch roots stand on chain ${chains.join(", ")}`);
  if (bundle.telemetry !== null) found.push("when the blocks were sealed, other than by the log's own clock");
  if (!opened) {
    const proof = bundle.proof === null ? "" : " beyond states, coverage and credit";
    found.push(`the stated counts${proof} (no opening was given)`);
  }
  found.push("that the collector told the truth");
  found.push("whether a later statement supersedes this one, or other terms this agreement");
  if (!witnessed) found.push("that the log shows everyone the same entries");
  if (!ofTenant) found.push("that the log holds no other statement of this period under another tenant");
  if (bundle.proof !== null) {
    const dev = underDevKey(bundle) ? " (it is a development key)" : "";
    found.push(`that the proving key's ceremony was honest${dev}`);
  }
  return found;
}
