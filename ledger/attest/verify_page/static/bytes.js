// Bytes, texts and whole numbers into each other. Nothing is padded, cut or reduced in silence.

const ENCODER = new TextEncoder();

export const utf8 = (text) => ENCODER.encode(text);

export function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function equal(left, right) {
  return left.length === right.length && left.every((byte, at) => byte === right[at]);
}

/** The order of two byte strings of one length. */
export function compareBytes(left, right) {
  const at = left.findIndex((byte, index) => byte !== right[index]);
  return at < 0 ? 0 : left[at] - right[at];
}

export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Bytes of lowercase or uppercase hex of even length, without a prefix. */
export function fromHex(text) {
  if (!/^(?:[0-9a-fA-F]{2})*$/.test(text)) throw new RangeError("no hex");
  return Uint8Array.from({ length: text.length / 2 }, (_, at) => parseInt(text.slice(2 * at, 2 * at + 2), 16));
}

/** A whole number of big-endian bytes. */
export function toInteger(bytes) {
  return bytes.length ? BigInt("0x" + hex(bytes)) : 0n;
}

/** `length` big-endian bytes of a whole number that fits. */
export function toBytes(value, length) {
  const digits = value.toString(16);
  if (value < 0n || digits.length > 2 * length) throw new RangeError(`${value} has no form of ${length} bytes`);
  return fromHex(digits.padStart(2 * length, "0"));
}

/** Bytes of standard base64 in its one canonical spelling; null for any other. */
export function fromBase64(text) {
  try {
    const decoded = atob(text);
    return btoa(decoded) === text ? Uint8Array.from(decoded, (character) => character.charCodeAt(0)) : null;
  } catch {
    return null;
  }
}
