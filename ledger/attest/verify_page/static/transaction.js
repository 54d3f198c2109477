// A raw transaction, offline: who signed it, and whether it records exactly this statement. Decoding is strict, so that
// one transaction has one spelling: minimal RLP, exactly the fields of its type, low s (EIP-2). Types: 0 where it names
// its chain (EIP-155), 1 (EIP-2930), 2 (EIP-1559) and 4 (EIP-7702).

import { secp256k1 } from "@noble/curves/secp256k1.js";

import { bytes32Word, checksumAddress, uintWord } from "./abi.js";
import { concat, equal, fromHex, toBytes } from "./bytes.js";
import { requireUint } from "./field.js";
import { keccak256, keccakText } from "./hashes.js";
import { asBytes, asList, asUint, decodeList, encodeUint, invalid, listOf } from "./rlp.js";

const PROOF = "bytes32,uint256[6],uint256[8]";
const STATEMENT = `(bytes32,uint64,uint64,uint32,uint32,uint256,bytes32,${PROOF})`;
// By how many proofs a statement has.
const RECORD = [
  null,
  { name: "verifyAndRecord", types: `(${STATEMENT})` },
  { name: "verifyAndRecordWithIncidents", types: `(${STATEMENT},(${PROOF}))` },
];
const PUBLISH = "anchorBatch((bytes32,uint64,bytes32),bytes32)";
const CALL = ["gas limit", "to", "value", "data"];
const SIGNATURE = ["y parity", "r", "s"];
const FEES = ["max priority fee", "max fee"];
const FIELDS = new Map([
  [0, ["nonce", "gas price", ...CALL, "v", "r", "s"]],
  [1, ["chain id", "nonce", "gas price", ...CALL, "access list", ...SIGNATURE]],
  [2, ["chain id", "nonce", ...FEES, ...CALL, "access list", ...SIGNATURE]],
  [4, ["chain id", "nonce", ...FEES, ...CALL, "access list", "authorizations", ...SIGNATURE]],
]);
const NUMBERS = ["nonce", "gas price", "gas limit", "max priority fee", "max fee"];
const FIRST_V_OF_A_CHAIN = 35n;
const MAX_RAW_BYTES = 131_072;
const ORDER = secp256k1.Point.Fn.ORDER;
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

/** The transaction in raw bytes: hash, sender, chain, target, value, data; throws. */
export function decodeTransaction(raw) {
  if (raw.length > MAX_RAW_BYTES) throw invalid(`is longer than ${MAX_RAW_BYTES} bytes`);
  const type = raw[0] >= 0xc0 ? 0 : (raw[0] ?? -1);
  // The byte 0 is the prefix of no transaction: type 0 has none.
  const names = FIELDS.get(type);
  if (!names) throw invalid("is of no type that is read here: 0, 1, 2 or 4");
  const typed = type === 0 ? new Uint8Array() : raw.subarray(0, 1);
  const list = raw.subarray(typed.length);
  const { items, places } = decodeList(list);
  if (items.length !== names.length) throw invalid(`has ${items.length} fields, not ${names.length}`);
  const fields = Object.fromEntries(names.map((name, at) => [name, items[at]]));
  checkLists(fields);
  const { chainId, parity } = chainAndParity(fields);
  let body = list.subarray(places[0], places.at(-4));
  // What EIP-155 signs in place of v, r and s.
  if (type === 0) body = concat(body, encodeUint(chainId), encodeUint(0n), encodeUint(0n));
  const to = asBytes(fields.to, "to");
  if ((to.length !== 0 && to.length !== 20) || (type === 4 && !to.length)) {
    throw invalid("has a recipient that is not 20 bytes");
  }
  NUMBERS.filter((name) => name in fields).forEach((name) => asUint(fields[name], name));
  return {
    hash: keccak256(raw),
    sender: recover(keccak256(concat(typed, listOf(body))), parity, asUint(fields.r, "r"), asUint(fields.s, "s")),
    chainId,
    to: to.length ? checksumAddress(to) : null,
    value: asUint(fields.value, "value"),
    data: asBytes(fields.data, "data"),
  };
}

/** Throws unless a transaction records exactly this at this registry, sent by a party. */
export function requireRecords(transaction, recording, { chainId, registry, parties }) {
  requireSent(transaction, chainId, registry);
  if (!parties.includes(transaction.sender)) {
    throw invalid(`is signed by ${transaction.sender}, who is no party of the agreement`);
  }
  const expected = callData(recording);
  if (equal(transaction.data, expected)) return;
  if (!equal(transaction.data.subarray(0, 4), expected.subarray(0, 4)) || transaction.data.length !== expected.length) {
    throw invalid(`does not call ${RECORD[recording.proofs.length].name}`);
  }
  const position = expected.findIndex((byte, at) => byte !== transaction.data[at]);
  throw invalid(`records another ${argumentAt(Math.floor((position - 4) / 32))}`);
}

/** Throws unless a transaction publishes exactly this batch, at this registry, in the name of `issuer`. */
export function requirePublishes(transaction, publication, { chainId, registry, issuer }) {
  requireSent(transaction, chainId, registry);
  if (transaction.sender !== issuer) {
    throw invalid(`is signed by ${transaction.sender}, not by the issuer ${issuer}`);
  }
  const words = [
    ["log", bytes32Word(publication.logId, "log_id")],
    ["size of the checkpoint", uintWord(publication.size, 64, "size")],
    ["root of the checkpoint", bytes32Word(publication.root, "root")],
    ["batch root", bytes32Word(publication.batchRoot, "batch_root")],
  ];
  const { data } = transaction;
  const selector = keccakText(PUBLISH).subarray(0, 4);
  if (!equal(data.subarray(0, 4), selector) || data.length !== 4 + 32 * words.length) {
    throw invalid("does not call anchorBatch");
  }
  words.forEach(([name, expected], place) => {
    const found = data.subarray(4 + 32 * place, 36 + 32 * place);
    if (!equal(found, expected)) throw invalid(`publishes another ${name}`);
  });
}

function requireSent(transaction, chainId, registry) {
  requireUint(chainId, 64, "chain_id");
  if (transaction.chainId !== chainId) throw invalid(`is for chain ${transaction.chainId}, not ${chainId}`);
  if (transaction.to !== registry) throw invalid(`goes to ${transaction.to}, not to the registry ${registry}`);
  if (transaction.value !== 0n) throw invalid("carries value, which the registry does not take");
}

function callData({ proofs, ...recording }) {
  const { name, types } = RECORD[proofs.length];
  return concat(
    keccakText(name + types).subarray(0, 4),
    bytes32Word(recording.slaId, "sla_id"),
    uintWord(recording.startNs, 64, "start_ns"),
    uintWord(recording.endNs, 64, "end_ns"),
    uintWord(BigInt(recording.termsVersion), 32, "terms_version"),
    uintWord(BigInt(recording.statementVersion), 32, "statement_version"),
    uintWord(recording.prevCtx, 256, "prev_ctx"),
    bytes32Word(recording.prevSignalsHash, "prev_signals_hash"),
    ...proofs.flatMap((each) => [
      bytes32Word(fromHex(each.circuitId), "circuit_id"),
      ...each.signals.map((signal) => toBytes(signal, 32)),
      fromHex(each.proof),
    ]),
  );
}

/** What a word of the call data is: the arguments, then of each proof six signals and eight words. */
function argumentAt(word) {
  if (word < ARGUMENTS.length) return ARGUMENTS[word];
  const place = word - ARGUMENTS.length;
  if (place < 14) return place < 6 ? `signal ${place}` : "proof";
  const second = place - 15;
  if (second < 0) return "circuit_id of the incident credit";
  return second < 6 ? `signal ${second} of the incident credit` : "proof of the incident credit";
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

/** The chain that a transaction is for, and which of two keys signed it. A v of 27 or 28 would name no chain. */
function chainAndParity(fields) {
  if (!("v" in fields)) {
    return { chainId: asUint(fields["chain id"], "chain id"), parity: asUint(fields["y parity"], "y parity") };
  }
  const v = asUint(fields.v, "v");
  if (v < FIRST_V_OF_A_CHAIN) {
    throw invalid("names no chain in its v (it is not signed by EIP-155), so it is good on any");
  }
  return { chainId: (v - FIRST_V_OF_A_CHAIN) / 2n, parity: (v - FIRST_V_OF_A_CHAIN) % 2n };
}

/** A list of [address, [storage keys]] (EIP-2930) and one of signed delegations (EIP-7702), where there are any. */
function checkLists(fields) {
  for (const entry of asList(fields["access list"] ?? [], "access list")) {
    const [address, keys] = asList(entry, "access list", 2);
    const lengths = [address, ...asList(keys, "access list")].map((each) => asBytes(each, "access list").length);
    if (lengths[0] !== 20 || lengths.slice(1).some((length) => length !== 32)) {
      throw invalid("has a malformed access list");
    }
  }
  for (const entry of asList(fields.authorizations ?? [], "list of authorizations")) {
    const [chainId, address, ...numbers] = asList(entry, "list of authorizations", 6);
    if (asBytes(address, "authorization").length !== 20) throw invalid("has a malformed list of authorizations");
    for (const number of [chainId, ...numbers]) asUint(number, "authorization");
  }
}
