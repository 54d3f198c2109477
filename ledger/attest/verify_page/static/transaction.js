// A raw EIP-1559 transaction, offline: who signed it, and whether it records exactly this statement. Decoding is strict,
// so that one transaction has one spelling: minimal RLP, exactly the fields of EIP-1559, low s (EIP-2).

import { secp256k1 } from "@noble/curves/secp256k1.js";

import { bytes32Word, checksumAddress, uintWord } from "./abi.js";
import { concat, equal, fromHex, toBytes, toInteger } from "./bytes.js";
import { keccak256, keccakText } from "./hashes.js";
import { Refusal } from "./refusal.js";

const RECORD = "verifyAndRecord((bytes32,uint64,uint64,uint32,uint32,uint256,bytes32,bytes32,uint256[6],uint256[8]))";
const [FIELDS, UNSIGNED_FIELDS] = [12, 9];
const MAX_RAW_BYTES = 131_072;
const MAX_DEPTH = 4;
const ORDER = secp256k1.Point.Fn.ORDER;
const INTEGERS = ["chain id", "nonce", "max priority fee", "max fee", "gas limit"];
const ARGUMENTS = [
  "sla_id",
  "start",
  "end",
  "terms version",
  "statement version",
  "prev_ctx",
  "prev_signals_hash",
  "circuit_id",
];

const invalid = (what) => new Refusal(`the raw transaction ${what}`);

/** The transaction in raw bytes: hash, sender, chain, target, value, data; throws. */
export function decodeTransaction(raw) {
  if (raw[0] !== 2) throw invalid("is not of type 2 (EIP-1559)");
  if (raw.length > MAX_RAW_BYTES) throw invalid(`is longer than ${MAX_RAW_BYTES} bytes`);
  const body = raw.subarray(1);
  const { fields, start, unsignedEnd } = decodeFields(body);
  const [chainId] = INTEGERS.map((name, at) => uint(fields[at], name));
  const [to, value, data] = [bytesOf(fields[5], "to"), uint(fields[6], "value"), bytesOf(fields[7], "data")];
  if (to.length !== 0 && to.length !== 20) throw invalid("has a recipient that is not 20 bytes");
  checkAccessList(fields[8]);
  const unsigned = concat(Uint8Array.of(2), listHeader(unsignedEnd - start), body.subarray(start, unsignedEnd));
  const [parity, r, s] = ["y parity", "r", "s"].map((name, at) => uint(fields[UNSIGNED_FIELDS + at], name));
  return {
    hash: keccak256(raw),
    sender: recover(keccak256(unsigned), parity, r, s),
    chainId,
    to: to.length ? checksumAddress(to) : null,
    value,
    data,
  };
}

/** Throws unless a transaction records exactly this at this registry, sent by a party. */
export function requireRecords(transaction, recording, { chainId, registry, parties }) {
  if (transaction.chainId !== chainId) throw invalid(`is for chain ${transaction.chainId}, not ${chainId}`);
  if (transaction.to !== registry) throw invalid(`goes to ${transaction.to}, not to the registry ${registry}`);
  if (!parties.includes(transaction.sender)) {
    throw invalid(`is signed by ${transaction.sender}, who is no party of the agreement`);
  }
  if (transaction.value !== 0n) throw invalid("carries value, which the registry does not take");
  const expected = callData(recording);
  if (equal(transaction.data, expected)) return;
  if (!equal(transaction.data.subarray(0, 4), expected.subarray(0, 4)) || transaction.data.length !== expected.length) {
    throw invalid("does not call verifyAndRecord");
  }
  const position = expected.findIndex((byte, at) => byte !== transaction.data[at]);
  throw invalid(`records another ${argumentAt(Math.floor((position - 4) / 32))}`);
}

function callData(recording) {
  return concat(
    keccakText(RECORD).subarray(0, 4),
    bytes32Word(recording.slaId, "sla_id"),
    uintWord(recording.startNs, 64, "start_ns"),
    uintWord(recording.endNs, 64, "end_ns"),
    uintWord(BigInt(recording.termsVersion), 32, "terms_version"),
    uintWord(BigInt(recording.statementVersion), 32, "statement_version"),
    uintWord(recording.prevCtx, 256, "prev_ctx"),
    bytes32Word(recording.prevSignalsHash, "prev_signals_hash"),
    bytes32Word(fromHex(recording.circuitId), "circuit_id"),
    ...recording.signals.map((signal) => toBytes(signal, 32)),
    fromHex(recording.proof),
  );
}

function argumentAt(word) {
  if (word < ARGUMENTS.length) return ARGUMENTS[word];
  return word - ARGUMENTS.length < 6 ? `signal ${word - ARGUMENTS.length}` : "proof";
}

function recover(digest, parity, r, s) {
  if (parity > 1n) throw invalid("has a y parity other than 0 or 1");
  if (r <= 0n || r >= ORDER || s <= 0n || s > ORDER / 2n) throw invalid("has a signature out of range (s must be low)");
  try {
    const signature = new secp256k1.Signature(r, s, Number(parity));
    return checksumAddress(keccak256(signature.recoverPublicKey(digest).toBytes(false).subarray(1)).subarray(12));
  } catch {
    throw invalid("has a signature that no key made");
  }
}

/** The twelve fields, where they start, and where the nine that are signed end. */
function decodeFields(body) {
  if (!body.length || body[0] < 0xc0) throw invalid("is not an RLP list");
  const [start, end] = span(body, 0, body.length);
  if (end !== body.length) throw invalid("has bytes after its end");
  const fields = [];
  let [position, unsignedEnd] = [start, start];
  while (position < end) {
    const [item, next] = decodeItem(body, position, end, 1);
    fields.push(item);
    position = next;
    if (fields.length === UNSIGNED_FIELDS) unsignedEnd = position;
  }
  if (fields.length !== FIELDS) throw invalid(`has ${fields.length} fields, not ${FIELDS}`);
  return { fields, start, unsignedEnd };
}

function decodeItem(data, position, limit, depth) {
  if (depth > MAX_DEPTH) throw invalid("nests lists too deeply");
  let [start, end] = span(data, position, limit);
  if (data[position] < 0xc0) return [data.subarray(start, end), end];
  const items = [];
  while (start < end) {
    const [item, next] = decodeItem(data, start, end, depth + 1);
    items.push(item);
    start = next;
  }
  return [items, end];
}

/** Where the content of an item starts and ends, inside `limit`; its length is minimal. */
function span(data, position, limit) {
  const prefix = data[position];
  if (prefix < 0x80) return [position, position + 1];
  const base = prefix < 0xc0 ? 0x80 : 0xc0;
  let [start, length] = [position + 1, prefix - base];
  if (prefix > base + 55) {
    start = position + 1 + prefix - base - 55;
    const size = data.subarray(position + 1, start);
    length = Number(toInteger(size));
    if (start > limit || size[0] === 0 || length <= 55)
      throw invalid("has an RLP length that is not minimal or cut off");
  }
  if (start + length > limit) throw invalid("is cut off");
  if (base === 0x80 && length === 1 && data[start] < 0x80) throw invalid("spells a single byte with a length");
  return [start, start + length];
}

function listHeader(length) {
  if (length <= 55) return Uint8Array.of(0xc0 + length);
  const digits = length.toString(16);
  const size = fromHex(digits.padStart(digits.length + (digits.length % 2), "0"));
  return concat(Uint8Array.of(0xf7 + size.length), size);
}

function bytesOf(item, name) {
  if (Array.isArray(item)) throw invalid(`has a list as its ${name}`);
  return item;
}

function uint(item, name) {
  const value = bytesOf(item, name);
  if (value.length > 32 || value[0] === 0) throw invalid(`has a ${name} with leading zeros or more than 256 bits`);
  return toInteger(value);
}

/** A list of [address, [storage keys]] (EIP-2930). */
function checkAccessList(item) {
  if (!Array.isArray(item)) throw invalid("has no list as its access list");
  const isBytes = (value, length) => !Array.isArray(value) && value.length === length;
  for (const entry of item) {
    const [address, keys] = Array.isArray(entry) && entry.length === 2 ? entry : [new Uint8Array(), []];
    const fits = isBytes(address, 20) && Array.isArray(keys) && keys.every((key) => isBytes(key, 32));
    if (!fits) throw invalid("has a malformed access list");
  }
}
