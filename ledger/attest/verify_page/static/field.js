// The scalar field of BN254. Nothing is reduced: a value and the value plus r would be one element and two texts.

import { Refusal } from "./refusal.js";

export const R = 21888242871839275222246405745257275088548364400416034343698204186575808495617n;
export const Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583n;

export function requireElement(value, name) {
  if (value < 0n || value >= R) {
    throw new Refusal(`${name} must be an integer from 0 to r-1 (the BN254 scalar field); values are not reduced`);
  }
  return value;
}

export function requireUint(value, bits, name) {
  if (value < 0n || value >> BigInt(bits)) throw new Refusal(`${name} must be an integer from 0 to 2^${bits}-1`);
  return value;
}

export const modulo = (value, modulus) => ((value % modulus) + modulus) % modulus;

function power(base, exponent, modulus) {
  let result = 1n;
  for (let [rest, square] = [exponent, base]; rest; rest >>= 1n, square = (square * square) % modulus) {
    if (rest & 1n) result = (result * square) % modulus;
  }
  return result;
}

/** 1 / value; both moduli are prime. */
export function inverse(value, modulus) {
  if (modulo(value, modulus) === 0n) throw new RangeError("0 has no inverse");
  return power(modulo(value, modulus), modulus - 2n, modulus);
}
