// Checks of the proof: its six signals against what the agreement and the statement give, its key, itself, its anchor.

import { equal, fromHex, hex } from "./bytes.js";
import { baseCommit, creditCommit, decodeSummary, readSignals, signalList, signalsHash } from "./formats.js";
import { checkProof } from "./groth16.js";
import { formatMinorUnits } from "./money.js";
import { requireKnownKey } from "./manifest.js";
import { require } from "./refusal.js";
import { requireReplacedCredit, tierCredit } from "./second_proof.js";
import { decodeTransaction, requireRecords } from "./transaction.js";

export function context(found) {
  const { context: given } = found.bundle;
  require(given !== null, "the bundle names no chain and registry");
  require(given.prev_ctx === String(found.previousCtx), "prev_ctx is not the context of the version before it");
  const replaced = given.prev_signals;
  require((replaced !== undefined) === found.proofsBefore > 0, "exactly a restatement names the signals it replaces");
  if (replaced !== undefined) {
    const before = readSignals(replaced);
    require(before.ctx === found.previousCtx, "the replaced signals are of another statement");
    require(before.termsHash === found.termsHash, "the replaced signals are under other terms");
    const root = found.provedBefore.at(-1).telemetry_root;
    require(String(before.telemetryRoot) === root, "the replaced signals are from other telemetry than that version");
  }
  requireReplacedCredit(found, given);
  require(found.signals.ctx === found.ctx, "the proof is for another chain, registry, agreement, period or version");
  return "the proof is for this chain, registry, agreement, period and version";
}

export function terms(found) {
  require(found.signals.termsHash === found.termsHash, "the proof is for other terms (termsHash)");
  return "the proof is under the signed terms";
}

export function telemetrySignal({ signals, bundle }) {
  require(String(signals.telemetryRoot) === bundle.telemetry?.root, "the proof is from other telemetry");
  return "the proof is from the sealed telemetry";
}

export function base(found) {
  const opened = found.bundle.base;
  require(opened !== null, "the salt of the base is missing");
  const commitment = baseCommit(found.sealKey, found.base, BigInt(opened.salt));
  require(found.signals.baseCommit === commitment, "the proof is over another base than the agreement's");
  return "the proof is over the agreement's base";
}

export function summary({ signals, results, issued }) {
  const shown = decodeSummary(signals.summary);
  const inSignal = (state) => (["no_data", "met", "breached"].includes(state) ? state : "unused");
  const states = shown.states.map((_, at) => (results[at] ? inSignal(results[at].state) : "unused"));
  require(results.length <= states.length &&
    states.every((state, at) => state === shown.states[at]), "the proof shows other states than the statement");
  for (const name of ["windows", "observed", "excluded", "idle"]) {
    require(shown[name] === issued[name], `the proof shows ${shown[name]} ${name} windows`);
  }
  const idle = shown.idle ? `, ${shown.idle} of them without any request` : "";
  return `${shown.observed} of ${shown.windows} windows observed${idle}, ${shown.excluded} excluded`;
}

export function credit(found) {
  const { issued, agreement, bundle } = found;
  if (agreement.compensation.impact) return tierCredit(found);
  require(issued.credit !== null, "the statement has no credit");
  const amount = BigInt(issued.credit.minor_units);
  const committed = agreement.compensation.visibility === "committed";
  const salt = bundle.credit_salt;
  require((salt !== null) === committed, "a credit salt belongs to a committed credit, and only there");
  const expected = committed ? creditCommit(found.ctx, amount, BigInt(salt)) : amount;
  require(found.signals.credit === expected, "the proof shows another credit than the statement");
  const shown = `a credit of ${formatMinorUnits(amount, issued.credit.currency)} ${issued.credit.currency}`;
  return committed ? `the proof commits to ${shown}, which the salt opens` : `the proof shows ${shown}`;
}

export function key(found) {
  const due = { name: found.circuitName, message: `a proof over these blocks is of ${found.circuitName}` };
  return requireKnownKey(found, found.proof, found.key, due);
}

export async function proof(found) {
  await checkProof(found.key, signalList(found.signals), found.proof.proof);
  return "the Groth16 proof holds for these six signals";
}

export function anchor(found) {
  const { anchor: placed, context: given } = found.bundle;
  require(placed !== null, "the statement is not anchored");
  const transaction = decodeTransaction(fromHex(placed.raw_transaction));
  require(equal(fromHex(placed.tx_hash.slice(2)), transaction.hash), "tx_hash is not the hash of the transaction");
  require(given !== null, "the bundle names no chain and registry");
  const { startNs, endNs } = found.period.interval;
  const recording = {
    slaId: found.slaId,
    startNs,
    endNs,
    termsVersion: found.issued.terms_version,
    statementVersion: found.proofsBefore + 1,
    prevCtx: found.previousCtx,
    prevSignalsHash: signalsHash([...(given.prev_signals ?? []), ...(given.prev_incident_signals ?? [])]),
    proofs: found.proofs,
  };
  const { issuer, customer } = found.agreement;
  const parties = [issuer.address, customer.address];
  requireRecords(transaction, recording, { chainId: BigInt(given.chain_id), registry: given.registry, parties });
  return `a party's transaction 0x${hex(transaction.hash).slice(0, 16)}... records exactly this at the registry`;
}
