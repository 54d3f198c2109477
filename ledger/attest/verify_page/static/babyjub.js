// EdDSA with Poseidon over Baby Jubjub (EIP-2494): the collector's and the probe's signatures under a telemetry root.

import { R, inverse, modulo } from "./field.js";
import { poseidon } from "./poseidon.js";

const [A, D] = [168700n, 168696n];
const SUBGROUP_ORDER = 2736030358979909402780800718157159386076813972158567259200215660948447373041n;
const B8 = [
  5299619240641551281634865583518297030282874472190772894086521144482721001553n,
  16950150798460657717958625567821834550301663161624707787222815936182638968203n,
];

/** Whether S * B8 = R8 + 8 * h * key, all in their one spelling and in the subgroup; never throws. */
export function telemetrySignatureHolds(key, message, { r8, s }) {
  if (!isPublicKey(key) || !inSubgroup(r8)) return false;
  if (message < 0n || message >= R || s < 0n || s >= SUBGROUP_ORDER) return false;
  const challenge = poseidon([...r8, ...key, message]);
  const [x, y] = multiply((8n * challenge) % SUBGROUP_ORDER, key);
  return samePoint(multiply(s, B8), affine(add([...r8, 1n], [x, y, 1n])));
}

export function isPublicKey(point) {
  return inSubgroup(point) && !samePoint(point, [0n, 1n]);
}

function samePoint([x1, y1], [x2, y2]) {
  return x1 === x2 && y1 === y2;
}

function inSubgroup([x, y]) {
  if ([x, y].some((value) => value < 0n || value >= R)) return false;
  const [xx, yy] = [(x * x) % R, (y * y) % R];
  if (modulo(A * xx + yy - 1n - D * xx * yy, R) !== 0n) return false;
  return samePoint(multiply(SUBGROUP_ORDER, [x, y]), [0n, 1n]);
}

/** Complete projective addition on a twisted Edwards curve (add-2008-bbjlp). */
function add([x1, y1, z1], [x2, y2, z2]) {
  const a = (z1 * z2) % R;
  const [b, c, d] = [(a * a) % R, (x1 * x2) % R, (y1 * y2) % R];
  const e = (((D * c) % R) * d) % R;
  const [f, g] = [b - e, b + e];
  const cross = (x1 + y1) * (x2 + y2) - c - d;
  return [modulo(((a * f) % R) * cross, R), modulo(((a * g) % R) * (d - A * c), R), modulo(f * g, R)];
}

function multiply(scalar, [x, y]) {
  let [result, square] = [
    [0n, 1n, 1n],
    [x, y, 1n],
  ];
  for (let rest = scalar; rest; rest >>= 1n) {
    if (rest & 1n) result = add(result, square);
    square = add(square, square);
  }
  return affine(result);
}

function affine([x, y, z]) {
  const factor = inverse(z, R);
  return [(x * factor) % R, (y * factor) % R];
}
