// RLP (Ethereum yellow paper, appendix B), strictly: one value has one spelling.

import { concat, fromHex, toInteger } from "./bytes.js";
import { Refusal } from "./refusal.js";

const MAX_DEPTH = 4;
const LIST = 0xc0;

/** The error that says what is wrong with the raw transaction. */
export const invalid = (what) => new Refusal(`the raw transaction ${what}`);

/** The items of the list that `body` is, and where each begins in it; the last number is the end of all. */
export function decodeList(body) {
  if (!body.length || body[0] < LIST) throw invalid("is not an RLP list");
  const [start, end] = span(body, 0, body.length);
  if (end !== body.length) throw invalid("has bytes after its end");
  const [items, places] = [[], [start]];
  while (places.at(-1) < end) {
    const [item, next] = decodeItem(body, places.at(-1), end, 1);
    items.push(item);
    places.push(next);
  }
  return { items, places };
}

/** A list whose items are encoded already, one after the other. */
export const listOf = (encoded) => concat(prefix(LIST, encoded.length), encoded);

export function encodeUint(value) {
  const data = bigEndian(value);
  return data.length === 1 && data[0] < 0x80 ? data : concat(prefix(0x80, data.length), data);
}

/** An item that is no list; `name` says what it is for. */
export function asBytes(item, name) {
  if (Array.isArray(item)) throw invalid(`has a list as its ${name}`);
  return item;
}

/** An item that is a number of at most 256 bits. */
export function asUint(item, name) {
  const value = asBytes(item, name);
  if (value.length > 32 || value[0] === 0) throw invalid(`has a ${name} with leading zeros or more than 256 bits`);
  return toInteger(value);
}

/** An item that is a list, of `length` items where that is given. */
export function asList(item, name, length = null) {
  if (!Array.isArray(item) || (length !== null && item.length !== length)) throw invalid(`has a malformed ${name}`);
  return item;
}

function decodeItem(data, position, limit, depth) {
  if (depth > MAX_DEPTH) throw invalid("nests lists too deeply");
  let [start, end] = span(data, position, limit);
  if (data[position] < LIST) return [data.subarray(start, end), end];
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
  const first = data[position];
  if (first < 0x80) return [position, position + 1];
  const base = first < LIST ? 0x80 : LIST;
  let [start, length] = [position + 1, first - base];
  if (first > base + 55) {
    start = position + 1 + first - base - 55;
    const size = data.subarray(position + 1, start);
    length = Number(toInteger(size));
    if (start > limit || size[0] === 0 || length <= 55) {
      throw invalid("has an RLP length that is not minimal or cut off");
    }
  }
  if (start + length > limit) throw invalid("is cut off");
  if (base === 0x80 && length === 1 && data[start] < 0x80) throw invalid("spells a single byte with a length");
  return [start, start + length];
}

function prefix(base, length) {
  if (length <= 55) return Uint8Array.of(base + length);
  const size = bigEndian(BigInt(length));
  return concat(Uint8Array.of(base + 55 + size.length), size);
}

function bigEndian(value) {
  if (value === 0n) return new Uint8Array();
  const digits = value.toString(16);
  return fromHex(digits.padStart(digits.length + (digits.length % 2), "0"));
}
