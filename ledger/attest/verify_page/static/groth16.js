// Groth16 over BN254: key and proof in their one spelling, then the equation by snarkjs and once more by @noble/curves.

import { bn254 } from "@noble/curves/bn254.js";

import { concat, fromHex, hex, toBytes, toInteger, utf8 } from "./bytes.js";
import { Q, R, modulo } from "./field.js";
import { sha256 } from "./hashes.js";
import { require } from "./refusal.js";

const [G1, G2] = [bn254.G1.Point, bn254.G2.Point];
const SIGNAL_COUNT = 6;

/** A key of a shape-checked document; throws on a point off its curve or group, and on a key that all can forge under. */
export function readKey(document) {
  const key = {
    document,
    alpha: readG1(document.vk_alpha_1, "vk_alpha_1"),
    beta: readG2(document.vk_beta_2, "vk_beta_2"),
    gamma: readG2(document.vk_gamma_2, "vk_gamma_2"),
    delta: readG2(document.vk_delta_2, "vk_delta_2"),
    ic: document.IC.map((point, at) => readG1(point, `IC[${at}]`)),
  };
  // Equal x means equal up to sign.
  require(!sameX(
    key.delta,
    key.gamma,
  ), "the verification key has delta equal to gamma: anyone can forge proofs under it");
  require(!sameX(
    key.delta,
    G2.BASE.toAffine(),
  ), "the verification key has the G2 generator as delta: its ceremony was never finished, anyone can forge");
  key.circuitId = circuitIdOf(key);
  return key;
}

/** Throws unless a proof of 256 bytes (hex) proves six signals under a key. */
export async function checkProof(key, signals, proofHex) {
  require(signals.length === SIGNAL_COUNT, `a proof under this key has ${SIGNAL_COUNT} signals, not ${signals.length}`);
  require(signals.every((value) => value >= 0n && value < R), "a signal is not a field element from 0 to r-1");
  const proof = readProof(fromHex(proofHex));
  const [bySnarkjs, byNoble] = [await heldBySnarkjs(key, signals, proof), heldByNoble(key, signals, proof)];
  if (bySnarkjs !== byNoble) throw new Error("snarkjs and @noble/curves do not agree on this proof");
  require(bySnarkjs, "the proof does not hold for these signals under this key");
}

function circuitIdOf({ alpha, beta, gamma, delta, ic }) {
  const words = [...g1Words(alpha), ...[beta, gamma, delta].flatMap(g2Words), ...ic.flatMap(g1Words)];
  const body = concat(...words.map((word) => toBytes(word, 32)));
  return hex(sha256(concat(utf8("sla-ledger/vk/v1"), toBytes(BigInt(ic.length - 1), 4), body)));
}

const g1Words = ({ x, y }) => [x, y];
// The imaginary part first.
const g2Words = ({ x, y }) => [x.c1, x.c0, y.c1, y.c0];
const sameX = (left, right) => left.x.c0 === right.x.c0 && left.x.c1 === right.x.c1;

function readCoordinate(text, where) {
  require(/^(?:0|[1-9][0-9]*)$/.test(text) &&
    BigInt(text) < Q, `the verification key has a coordinate in ${where} that is not a canonical decimal below q`);
  return BigInt(text);
}

function readG1([x, y, z], where) {
  require(z === "1", `the verification key must give ${where} as [x, y, "1"]`);
  const point = { x: readCoordinate(x, where), y: readCoordinate(y, where) };
  require(onG1(point), `the verification key has ${where} off the curve`);
  return point;
}

function readG2([x, y, z], where) {
  require(z[0] === "1" && z[1] === "0", `the verification key must give ${where} as [[x0, x1], [y0, y1], ["1", "0"]]`);
  const [xs, ys] = [x, y].map(([c0, c1]) => ({ c0: readCoordinate(c0, where), c1: readCoordinate(c1, where) }));
  require(inG2({ x: xs, y: ys }), `the verification key has ${where} off the curve or outside the group`);
  return { x: xs, y: ys };
}

/** y^2 = x^3 + 3, a curve whose whole group has order r; infinity has no such form. */
function onG1({ x, y }) {
  return modulo(y * y - x * x * x - 3n, Q) === 0n;
}

/** Whether a point is on the twist and in its subgroup of order r, where pairings mean something. */
function inG2(point) {
  try {
    const found = G2.fromAffine(point);
    // Not by isTorsionFree, which may know a shortcut: the definition itself.
    return (
      !found.is0() &&
      isOnTwist(point) &&
      found
        .multiplyUnsafe(R - 1n)
        .add(found)
        .is0()
    );
  } catch {
    return false;
  }
}

function isOnTwist({ x, y }) {
  const { Fp2 } = bn254.fields;
  const right = Fp2.add(Fp2.mul(Fp2.sqr(x), x), Fp2.div({ c0: 3n, c1: 0n }, { c0: 9n, c1: 1n }));
  return Fp2.eql(Fp2.sqr(y), right);
}

function readProof(bytes) {
  require(bytes.length === 256, "a proof has 256 bytes");
  const words = Array.from({ length: 8 }, (_, at) => toInteger(bytes.subarray(32 * at, 32 * at + 32)));
  require(words.every((word) => word < Q), "the proof has a coordinate that is not below q");
  const [ax, ay, bx1, bx0, by1, by0, cx, cy] = words;
  const proof = { a: { x: ax, y: ay }, b: { x: { c0: bx0, c1: bx1 }, y: { c0: by0, c1: by1 } }, c: { x: cx, y: cy } };
  require(onG1(proof.a) && onG1(proof.c), "point A or C of the proof is not on the curve");
  require(inG2(proof.b), "point B of the proof is not in the group");
  return proof;
}

async function heldBySnarkjs(key, signals, { a, b, c }) {
  const proof = {
    protocol: "groth16",
    curve: "bn128",
    pi_a: [String(a.x), String(a.y), "1"],
    pi_b: [
      [String(b.x.c0), String(b.x.c1)],
      [String(b.y.c0), String(b.y.c1)],
      ["1", "0"],
    ],
    pi_c: [String(c.x), String(c.y), "1"],
  };
  // Its own copy: a library may change what it is given.
  const document = JSON.parse(JSON.stringify(key.document));
  return (await globalThis.snarkjs.groth16.verify(document, signals.map(String), proof)) === true;
}

/** e(A, B) = e(alpha, beta) * e(IC(signals), gamma) * e(C, delta), as a product that is 1. */
function heldByNoble(key, signals, { a, b, c }) {
  const inputs = signals.reduce(
    (total, signal, at) => (signal ? total.add(G1.fromAffine(key.ic[at + 1]).multiplyUnsafe(signal)) : total),
    G1.fromAffine(key.ic[0]),
  );
  const pairs = [
    [G1.fromAffine(a).negate(), b],
    [G1.fromAffine(key.alpha), key.beta],
    [inputs, key.gamma],
    [G1.fromAffine(c), key.delta],
  ];
  // A pairing with infinity is 1.
  const finite = pairs.filter(([g1]) => !g1.is0()).map(([g1, g2]) => ({ g1, g2: G2.fromAffine(g2) }));
  return bn254.fields.Fp12.eql(bn254.pairingBatch(finite), bn254.fields.Fp12.ONE);
}
