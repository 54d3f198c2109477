// Signed notes, checkpoints and cosignatures (C2SP signed-note, tlog-checkpoint, tlog-cosignature v1).

import { concat, equal, fromBase64, hex, toInteger, utf8 } from "./bytes.js";
import { sha256, signatureHolds } from "./hashes.js";
import { MAX_TREE_SIZE } from "./merkle.js";
import { Refusal, require } from "./refusal.js";

const [ED25519, COSIGNATURE_V1] = [0x01, 0x04];
const MAX_NOTE_BYTES = 256 * 1024;
const MAX_SIGNATURES = 100;
const MAX_KEY_CHARS = 1024;
const MAX_TIMESTAMP_S = 2n ** 63n - 1n;
const DASH = "\u2014";
const CONTROL = /[\u0000-\u0009\u000b-\u001f]/;
const SPACE = /[ \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

/** The key of a log, in one line: `name+hash+base64`. Throws. */
export const parseVkey = (vkey) => parseTypedVkey(vkey, ED25519);
const parseWitnessVkey = (vkey) => parseTypedVkey(vkey, COSIGNATURE_V1);

/** What a bundle's checkpoint states, where the log's key signed it; throws. `others`: signatures of other keys. */
export function openCheckpoint(raw, key) {
  const { text, signatures } = parseNote(raw);
  const others = [];
  let signed = false;
  for (const each of distinct(signatures)) {
    if (each.name !== key.name || !equal(each.keyId, key.keyId)) {
      others.push(each);
    } else if (signatureHolds(key.publicKey, utf8(text), each.signature)) {
      signed = true;
    } else {
      throw new Refusal(`The signature of ${key.name} is false: the note was altered after signing.`);
    }
  }
  require(signed, "No trusted key signed this note.");
  const { origin, size, root } = parseCheckpoint(text);
  require(origin === key.name, `The checkpoint is of log '${origin}', not of '${key.name}'.`);
  return { origin, size, root, text, others };
}

/** The names of the witnesses of a policy that cosigned a note's text; throws below the quorum or for a false line. */
export function requireQuorum(text, lines, { vkeys, quorum }) {
  const keys = vkeys.map(parseWitnessVkey);
  const distinctKeys = new Set(keys.map((key) => hex(key.publicKey)));
  require(distinctKeys.size === keys.length, "Two witnesses of the policy share one public key; they are one witness.");
  require(quorum <= keys.length, `A quorum of ${quorum} cannot be reached with ${keys.length} witnesses.`);
  const found = new Map();
  for (const line of lines) {
    const key = keys.find((each) => each.name === line.name && equal(each.keyId, line.keyId));
    if (!key) continue;
    requireCosigned(text, line, key);
    found.set(hex(key.publicKey), key.name);
  }
  require(found.size >= quorum, `${found.size} of the ${quorum} required witnesses cosigned the checkpoint.`);
  return [...found.values()];
}

function requireCosigned(text, { signature }, key) {
  require(signature.length ===
    72, `The cosignature of ${key.name} has ${signature.length} bytes instead of a time and a signature.`);
  const seconds = toInteger(signature.subarray(0, 8));
  require(seconds > 0n &&
    seconds <= MAX_TIMESTAMP_S, `The cosignature of ${key.name} carries no time that version 1 has.`);
  const message = utf8(`cosignature/v1\ntime ${seconds}\n${text}`);
  require(signatureHolds(key.publicKey, message, signature.subarray(8)), `The cosignature of ${key.name} is false.`);
}

function parseTypedVkey(vkey, type) {
  const [name, idHex, ...rest] = vkey.length <= MAX_KEY_CHARS ? vkey.split("+") : [];
  require(rest.length > 0 &&
    /^[0-9a-f]{8}$/.test(idHex), "Not a verifier key. Expected one line: name+8 hex digits+base64.");
  const typed = fromBase64(rest.join("+"));
  require(typed !== null &&
    typed[0] ===
      type, `The verifier key is not an Ed25519 key of type 0x0${type} in canonical base64; a log's key has type 0x01, a ` +
    "witness's 0x04, and no other is known here.");
  require(isKeyName(
    name,
  ), "A key name is not empty and has no space, plus or control character; use a URL without scheme, such as " +
    "example.com/log.");
  require(typed.length === 33, "An Ed25519 public key has 32 bytes.");
  const keyId = sha256(concat(utf8(`${name}\n`), typed)).subarray(0, 4);
  require(hex(keyId) === idHex, `The verifier key's hash should be ${hex(keyId)}; it was mistyped or altered.`);
  return { name, keyId, publicKey: typed.subarray(1) };
}

function isKeyName(name) {
  return name !== "" && !name.includes("+") && !CONTROL.test(name) && !SPACE.test(name) && name.isWellFormed();
}

function parseNote(raw) {
  const bytes = utf8(raw);
  require(bytes.length <= MAX_NOTE_BYTES, `The note has ${bytes.length} bytes; at most ${MAX_NOTE_BYTES} are read.`);
  const at = raw.lastIndexOf("\n\n");
  const block = raw.slice(at + 2);
  require(at >= 0 &&
    block.endsWith("\n"), "A note needs a blank line and, below it, signature lines that end in a newline.");
  const lines = block.slice(0, -1).split("\n");
  require(lines.length <=
    MAX_SIGNATURES, `The note has ${lines.length} signatures; at most ${MAX_SIGNATURES} are read.`);
  const text = raw.slice(0, at) + "\n";
  require(!CONTROL.test(text), "The text of a note has a control character other than newline.");
  return { text, signatures: lines.map(parseSignature) };
}

function parseSignature(line) {
  const [dash, name, ...rest] = line.split(" ");
  require(dash === DASH &&
    name !== undefined &&
    isKeyName(name), "Below the blank line a note has only signature lines: em dash, space, key name, space, base64.");
  const blob = fromBase64(rest.join(" "));
  require(blob !== null &&
    blob.length > 4, `The signature of ${name} is not canonical base64 of a key id and a signature.`);
  return { name, keyId: blob.subarray(0, 4), signature: blob.subarray(4), line };
}

function distinct(signatures) {
  return [...new Map(signatures.map((each) => [each.line, each])).values()];
}

function parseCheckpoint(text) {
  const [origin, sizeText, encodedRoot, ...extensions] = text.slice(0, -1).split("\n");
  require(encodedRoot !== undefined, "A checkpoint has at least three lines: origin, tree size, root.");
  require(/^(?:0|[1-9][0-9]{0,18})$/.test(
    sizeText,
  ), "The checkpoint's second line is not a tree size in plain decimal.");
  const root = fromBase64(encodedRoot);
  require(root !== null, "The checkpoint's third line is not canonical base64.");
  const size = BigInt(sizeText);
  require(size <= MAX_TREE_SIZE, `A checkpoint's tree size must be between 0 and ${MAX_TREE_SIZE}.`);
  require(root.length === 32, `A checkpoint's root has ${root.length} bytes instead of 32.`);
  require(size > 0n ||
    equal(root, sha256(new Uint8Array())), "The checkpoint gives the empty tree a root it cannot have.");
  require([origin, ...extensions].every(
    (each) => each !== "",
  ), "The origin and the extension lines of a checkpoint are single, non-empty lines.");
  return { origin, size, root };
}
