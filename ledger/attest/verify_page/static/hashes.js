// The hash functions and signatures that come from libraries, under our names and our refusals.

import { ed25519 } from "@noble/curves/ed25519.js";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";

import { concat, equal, toInteger, utf8 } from "./bytes.js";

export { keccak256, sha256 };

/** Keccak-256 of an ASCII text: the domain constants of the formats. */
export const keccakText = (text) => keccak256(utf8(text));

const FIELD_PRIME = 2n ** 255n - 19n;
const ORDER = ed25519.Point.Fn.ORDER;
// The y coordinates of the eight points of edwards25519 whose order divides 8.
const SMALL_ORDER_Y = new Set([
  0n,
  1n,
  FIELD_PRIME - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
]);

const littleEndian = (bytes) => toInteger(Uint8Array.from(bytes).reverse());

/**
 * Whether an Ed25519 signature (RFC 8032, without cofactor) holds; never throws. Keys of small order, which accept one
 * signature for every message, and keys in a second spelling are refused.
 */
export function signatureHolds(publicKey, message, signature) {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const y = littleEndian(publicKey) & ~(1n << 255n);
  if (y >= FIELD_PRIME || SMALL_ORDER_Y.has(y)) return false;
  const s = littleEndian(signature.subarray(32));
  if (s >= ORDER) return false;
  try {
    const [r, key] = [signature.subarray(0, 32), ed25519.Point.fromBytes(publicKey)];
    const challenge = littleEndian(sha512(concat(r, publicKey, message))) % ORDER;
    const left = ed25519.Point.BASE.multiplyUnsafe(s);
    return equal(left.subtract(key.multiplyUnsafe(challenge)).toBytes(), r);
  } catch {
    return false;
  }
}
