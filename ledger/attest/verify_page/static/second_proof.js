// Checks of the second proof, of a credit that incidents add to (docs/attestation-format.md, sections 8 and 12).

import { incidentRootOf, incidentSummary, signalList, tierCommit, totalCommit } from "./formats.js";
import { checkProof } from "./groth16.js";
import { statedIncidents } from "./incidents.js";
import { requireKnownKey } from "./manifest.js";
import { formatMinorUnits } from "./money.js";
import { require } from "./refusal.js";

const CIRCUIT = "incidents_64";

/** The second proof is about the same statement and terms, and starts from the tiers' amount. */
export function incidents(found) {
  const { incidentSignals: shown, agreement } = found;
  require(shown.ctx === found.ctx, "the incident proof is for another chain, registry, agreement, period or version");
  require(shown.termsHash === found.termsHash, "the incident proof is for other terms (termsHash)");
  require(shown.tierCredit === found.signals.credit, "the incident proof starts from another amount of the tiers");
  require(agreement.compensation.impact !== null, "the terms pay for no incidents");
  const stated = statedIncidents(found);
  require(shown.summary === incidentSummary(stated), "the incident proof is about other incidents (summary)");
  const root = incidentRootOf(found.sealKey, agreement.compensation, stated);
  require(shown.incidentRoot === root, "the incident proof is about other incidents (incidentRoot)");
  return `the second proof is over the ${stated.length} incident(s) of the statement and the tiers of the first`;
}

/** Signal 1 of the first proof: what the tiers come to, exactly. */
export function tierCredit(found) {
  const { bundle, issued } = found;
  const [bps, salt] = [issued.trace.combined_bps, bundle.credit_salt];
  requireSalt(found, salt);
  const amount = found.base * BigInt(bps);
  const expected = salt === null ? amount : tierCommit(found.ctx, amount, BigInt(salt));
  require(found.signals.credit === expected, "the proof shows another amount of the tiers than the statement");
  const shown = salt === null ? "shows" : "commits to";
  return `the proof ${shown} ${bps} basis points of the base by the tiers, before cap, minimum and rounding`;
}

/** Signal 1 of the second proof, which alone is the credit. */
export function total(found) {
  const { credit } = found.issued;
  const salt = found.incidentProof.credit_salt;
  require(credit !== null, "the statement has no credit");
  requireSalt(found, salt);
  const amount = BigInt(credit.minor_units);
  const expected = salt === null ? amount : totalCommit(found.ctx, amount, BigInt(salt));
  require(found.incidentSignals.credit === expected, "the incident proof shows another credit than the statement");
  const shown = `a credit of ${formatMinorUnits(amount, credit.currency)} ${credit.currency}`;
  return `the second proof ${salt === null ? "shows" : "commits to"} ${shown}, incidents and tiers together`;
}

export function key(found) {
  const due = { name: CIRCUIT, message: `the proof of an incident credit is of ${CIRCUIT}` };
  return requireKnownKey(found, found.incidentProof, found.incidentKey, due);
}

export async function proof(found) {
  await checkProof(found.incidentKey, signalList(found.incidentSignals), found.incidentProof.proof);
  return "the Groth16 proof of the incident credit holds for its six signals";
}

/** Under terms that pay for incidents a replaced statement has the signals of its second proof, too. */
export function requireReplacedCredit(found, context) {
  const said = context.prev_incident_signals;
  const expected = found.agreement.compensation.impact !== null && found.proofsBefore > 0;
  require((said !== undefined) === expected, "exactly a replaced incident credit has prev_incident_signals");
  if (said === undefined) return;
  const [, , ctx, , termsHash] = said.map(BigInt);
  require(ctx === found.previousCtx, "the replaced signals of the incident credit are of another statement");
  require(termsHash === found.termsHash, "the replaced signals of the incident credit are of other terms");
}

function requireSalt({ agreement }, salt) {
  const committed = agreement.compensation.visibility === "committed";
  require((salt !== null) === committed, "a credit salt belongs to a committed credit, and only there");
}
