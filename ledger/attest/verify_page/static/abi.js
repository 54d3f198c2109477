// Static words of the Solidity ABI: 32 big-endian bytes each. Values that do not fit are refused.

import { fromHex, hex, toBytes, utf8 } from "./bytes.js";
import { keccak256 } from "./hashes.js";
import { Refusal } from "./refusal.js";

export function uintWord(value, bits, name) {
  if (value < 0n || value >> BigInt(bits)) throw new Refusal(`${name} must be an integer from 0 to 2^${bits}-1`);
  return toBytes(value, 32);
}

export function bytes32Word(value, name) {
  if (value.length !== 32) throw new Refusal(`${name} must be exactly 32 bytes`);
  return value;
}

/** An address in EIP-55 form: one address has one text. */
export function addressWord(address, name) {
  if (!isChecksumAddress(address)) {
    throw new Refusal(`${name} must be an address in EIP-55 form (0x and 40 hex digits with checksum case)`);
  }
  return fromHex(address.slice(2).padStart(64, "0"));
}

function isChecksumAddress(address) {
  return /^0x[0-9a-fA-F]{40}$/.test(address) && checksumAddress(fromHex(address.slice(2))) === address;
}

/** The EIP-55 form of 20 bytes. */
export function checksumAddress(bytes) {
  const digits = hex(bytes);
  const pattern = hex(keccak256(utf8(digits)));
  return "0x" + Array.from(digits, (digit, at) => (pattern[at] >= "8" ? digit.toUpperCase() : digit)).join("");
}
