// The byte formats of a statement (docs/attestation-format.md, sections 3 to 10), one function each.

import { addressWord, bytes32Word, uintWord } from "./abi.js";
import { concat, fromHex, toBytes, toInteger } from "./bytes.js";
import { requireElement, requireUint } from "./field.js";
import { keccak256, keccakText } from "./hashes.js";
import { poseidon, sponge, tag } from "./poseidon.js";
import { Refusal } from "./refusal.js";

export const BLOCK_WINDOWS = 25;
const COUNT_BITS = 28;
const TIER_BITS = 78;
const INCIDENTS = 64;
const PAIR = "sla-ledger/circuit-pair/v1";
const SIGNALS = ["summary", "credit", "ctx", "telemetryRoot", "termsHash", "baseCommit"];
const INCIDENT_SIGNALS = ["summary", "credit", "ctx", "tierCredit", "termsHash", "incidentRoot"];
const STATES = ["unused", "no_data", "met", "breached"];
const COUNTS = ["windows", "observed", "excluded", "idle"];

/** The 32 bytes that name an agreement on chain. */
export function slaIdOf({ issuer, customer, nonce }) {
  const parties = [addressWord(issuer.address, "issuer"), addressWord(customer.address, "customer")];
  return keccak256(concat(...parties, bytes32Word(nonce, "nonce")));
}

/** What a seal is for: agreement, period and window length. */
export function sealKeyOf(slaId, docSha256, { startNs, endNs }, windowSeconds) {
  const encoded = concat(
    keccakText("sla-ledger/seal/v1"),
    bytes32Word(slaId, "sla_id"),
    bytes32Word(docSha256, "doc_sha256"),
    uintWord(startNs, 64, "start_ns"),
    uintWord(endNs, 64, "end_ns"),
    uintWord(BigInt(windowSeconds), 32, "window_seconds"),
  );
  return toInteger(keccak256(encoded)) >> 8n;
}

/** Where and for what a statement counts: chain, registry, agreement, period, version. */
export function contextOf({ chainId, registry, slaId, interval, termsVersion, statementVersion, previous }) {
  const encoded = concat(
    keccakText("sla-ledger/ctx/v1"),
    uintWord(chainId, 256, "chain_id"),
    addressWord(registry, "registry"),
    bytes32Word(slaId, "sla_id"),
    uintWord(interval.startNs, 64, "start_ns"),
    uintWord(interval.endNs, 64, "end_ns"),
    uintWord(BigInt(termsVersion), 32, "terms_version"),
    uintWord(BigInt(statementVersion), 32, "statement_version"),
    uintWord(previous, 256, "previous"),
  );
  return toInteger(keccak256(encoded)) >> 8n;
}

/** `windows`: by position `good`, `bad` (lists by objective), `observed`, `excluded`. One hash for each salt. */
export function blockHashes(sealKey, windows, salts) {
  if (windows.length > BLOCK_WINDOWS * salts.length) {
    throw new Refusal(`${windows.length} windows do not fit ${salts.length} blocks of ${BLOCK_WINDOWS}`);
  }
  const words = windows.map(wordOf);
  return salts.map((salt, index) => {
    const own = words.slice(index * BLOCK_WINDOWS, (index + 1) * BLOCK_WINDOWS);
    const padding = Array(BLOCK_WINDOWS - own.length).fill(0n);
    return sponge(tag("block"), [sealKey, BigInt(index), ...own, ...padding, requireElement(salt, "salt")]);
  });
}

export function wordOf({ good, bad, observed, excluded }) {
  let word = (observed ? 1n << 224n : 0n) | (excluded ? 1n << 225n : 0n);
  good.forEach((count, m) => {
    word |= requireUint(count, COUNT_BITS, `good[${m}]`) << BigInt(56 * m);
    word |= requireUint(bad[m], COUNT_BITS, `bad[${m}]`) << BigInt(56 * m + COUNT_BITS);
  });
  return word;
}

export function telemetryRootOf(sealKey, windowCount, blocks) {
  if (windowCount < 1 || windowCount > BLOCK_WINDOWS * blocks.length) {
    throw new Refusal(`${windowCount} windows do not fit ${blocks.length} blocks of ${BLOCK_WINDOWS}`);
  }
  return sponge(tag("telemetry"), [sealKey, BigInt(windowCount), ...blocks]);
}

export function baseCommit(sealKey, fee, salt) {
  return poseidon([tag("base"), sealKey, requireUint(fee, 64, "fee"), salt]);
}

/** The same of an exact amount of tiers, in 1/10000 minor units. */
export function tierCommit(ctx, amount, salt) {
  return poseidon([tag("credit"), ctx, requireUint(amount, TIER_BITS, "amount_e4"), salt]);
}

/** The total of tiers and incidents, where the terms hide amounts. */
export function totalCommit(ctx, credit, salt) {
  return poseidon([tag("total"), ctx, requireUint(credit, 64, "credit"), requireElement(salt, "total_salt")]);
}

/** Incidents in the places of the circuit: where there are more of them, the last place has the sums of the rest. */
function inPlaces(incidents) {
  if (incidents.length <= INCIDENTS) return incidents;
  const rest = incidents.slice(INCIDENTS - 1);
  const together = rest.reduce((all, { count, good, valid }) => ({
    first: all.first,
    count: all.count + count,
    good: all.good + good,
    valid: all.valid + valid,
  }));
  return [...incidents.slice(0, INCIDENTS - 1), together];
}

/** Signal 0 of the second proof: the places that are taken, and the windows of all incidents. */
export function incidentSummary(incidents) {
  const windows = incidents.reduce((total, each) => total + each.count, 0);
  return BigInt(inPlaces(incidents).length) | (BigInt(windows) << 8n);
}

/** What the second proof is about: the terms' rule, and each incident by its place and its counts. */
export function incidentRootOf(sealKey, { impact, rulesCombine }, incidents) {
  const words = inPlaces(incidents).map(({ first, count, good, valid }) => {
    const parts = [
      requireUint(BigInt(first), 10, "first"),
      requireUint(BigInt(count), 10, "windows") << 10n,
      requireUint(good, 38, "good") << 20n,
      requireUint(valid - good, 38, "bad") << 58n,
    ];
    return parts.reduce((word, part) => word | part);
  });
  const padding = Array(INCIDENTS - words.length).fill(0n);
  const price = [requireUint(impact.coefficientE9, 64, "coefficient"), requireUint(impact.priceE9, 64, "price")];
  const head = [sealKey, ...price, rulesCombine === "sum" ? 1n : 0n, BigInt(words.length)];
  return sponge(tag("incidents"), [...head, ...words, ...padding]);
}

export function creditCommit(ctx, credit, salt) {
  return poseidon([tag("credit"), ctx, requireUint(credit, 64, "credit"), salt]);
}

/** The six signals of a list of decimal texts, by name; each a field element. */
export const readSignals = (texts) => namedSignals(SIGNALS, texts);
export const readIncidentSignals = (texts) => namedSignals(INCIDENT_SIGNALS, texts);

function namedSignals(names, texts) {
  return Object.fromEntries(names.map((name, at) => [name, requireElement(BigInt(texts[at]), snakeCase(name))]));
}

const snakeCase = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Signals by name as the list that they were read from. */
export const signalList = (signals) => Object.values(signals);

/** How the registry names signals, of one proof or of two; zero where there are none. */
export function signalsHash(values) {
  return values.length ? keccak256(concat(...values.map((value) => toBytes(BigInt(value), 32)))) : new Uint8Array(32);
}

/**
 * How registry and batches name a statement with one proof, or with a second one of its incident credit; each of `proofs`
 * has `circuitId`, `signals` and `proof`. The leaf is hashed twice, so that it is never a node.
 */
export function nameOf(ctx, proofs) {
  const circuits = proofs.map((each) => bytes32Word(fromHex(each.circuitId), "circuit_id"));
  const circuitId = circuits.length === 1 ? circuits[0] : keccak256(concat(keccakText(PAIR), ...circuits));
  const signals = signalsHash(proofs.flatMap((each) => each.signals));
  const proofHash = keccak256(concat(...proofs.map((each) => fromHex(each.proof))));
  const encoded = concat(keccakText("sla-ledger/leaf/v1"), toBytes(ctx, 32), signals, proofHash, circuitId);
  return { circuitId, signalsHash: signals, proofHash, leaf: keccak256(keccak256(encoded)) };
}

/** What the summary signal shows: the `states` of four objectives, and the counts of windows. */
export function decodeSummary(signal) {
  requireUint(signal, 48, "summary");
  const shown = { states: STATES.map((_, m) => STATES[Number((signal >> BigInt(2 * m)) & 3n)]) };
  COUNTS.forEach((name, at) => {
    shown[name] = Number((signal >> BigInt(8 + 10 * at)) & 1023n);
  });
  if (shown.windows === 0 || shown.observed + shown.excluded > shown.windows || shown.idle > shown.observed) {
    throw new Refusal("a summary needs windows >= 1, observed + excluded <= windows and idle <= observed");
  }
  return shown;
}
