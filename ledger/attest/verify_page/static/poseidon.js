// Poseidon over BN254 with the parameters of circomlib, worked out from their definition (docs/attestation-format.md,
// section 1), and the sponge and tags made of it.

import { toInteger, utf8 } from "./bytes.js";
import { R, inverse, requireElement } from "./field.js";
import { sha256 } from "./hashes.js";

const FULL_ROUNDS = 8;
const PARTIAL_ROUNDS = [56, 57, 56, 60, 60, 63, 64, 63, 60, 66, 60, 65, 70, 60, 64, 68];
const ELEMENT_BITS = 254;
const SPONGE_RATE = 15;
const known = new Map();

/** Poseidon of 1 to 16 field elements. */
export function poseidon(inputs) {
  inputs.forEach((value, at) => requireElement(value, `Poseidon input ${at}`));
  if (!known.has(inputs.length)) known.set(inputs.length, parameters(inputs.length));
  const { constants, matrix } = known.get(inputs.length);
  let state = [0n, ...inputs];
  constants.forEach((round, number) => {
    const full = number < FULL_ROUNDS / 2 || number >= constants.length - FULL_ROUNDS / 2;
    const raised = state.map((value, at) => {
      const sum = (value + round[at]) % R;
      return full || at === 0 ? fifth(sum) : sum;
    });
    state = matrix.map((row) => row.reduce((sum, factor, at) => sum + factor * raised[at], 0n) % R);
  });
  return state[0];
}

/** H(domain; values): 15 values at a time, the last ones padded with 0. */
export function sponge(domain, values) {
  let state = domain;
  for (let at = 0; at < values.length; at += SPONGE_RATE) {
    const run = values.slice(at, at + SPONGE_RATE);
    state = poseidon([state, ...run, ...Array(SPONGE_RATE - run.length).fill(0n)]);
  }
  return state;
}

/** TAG(name): 31 bytes of a SHA-256. */
export function tag(name) {
  return toInteger(sha256(utf8(`sla-ledger/v1/${name}`)).subarray(0, 31));
}

function fifth(value) {
  const square = (value * value) % R;
  return (((square * square) % R) * value) % R;
}

function parameters(arity) {
  const width = arity + 1;
  const partial = PARTIAL_ROUNDS[arity - 1];
  if (!partial) throw new RangeError(`Poseidon takes 1 to 16 inputs, not ${arity}`);
  const numbers = grainNumbers(width, partial);
  const next = () => numbers.next().value;
  const below = () => {
    for (;;) {
      const value = next();
      if (value < R) return value;
    }
  };
  const constants = Array.from({ length: FULL_ROUNDS + partial }, () => Array.from({ length: width }, below));
  let seeds;
  do seeds = Array.from({ length: 2 * width }, () => next() % R);
  while (new Set(seeds).size < seeds.length);
  const [xs, ys] = [seeds.slice(0, width), seeds.slice(width)];
  return { constants, matrix: xs.map((x) => ys.map((y) => inverse(x + y, R))) };
}

/** The self-shrinking Grain LFSR: numbers of 254 bits, highest first. */
function* grainNumbers(width, partial) {
  const binary = (value, length) => value.toString(2).padStart(length, "0");
  const header = `010000${binary(ELEMENT_BITS, 12)}${binary(width, 12)}${binary(FULL_ROUNDS, 10)}${binary(partial, 10)}`;
  // A ring of 80 bits; `oldest` is where the next bit takes the place of the one that leaves.
  const ring = Uint8Array.from(header + "1".repeat(30), Number);
  let oldest = 0;
  const step = () => {
    const bit = [62, 51, 38, 23, 13, 0].reduce((sum, tap) => sum ^ ring[(oldest + tap) % 80], 0);
    ring[oldest] = bit;
    oldest = (oldest + 1) % 80;
    return bit;
  };
  for (let thrown = 0; thrown < 160; thrown += 1) step();
  for (;;) {
    let bits = "0b";
    while (bits.length < ELEMENT_BITS + 2) {
      const counts = step();
      const bit = step();
      if (counts) bits += bit;
    }
    yield BigInt(bits);
  }
}
