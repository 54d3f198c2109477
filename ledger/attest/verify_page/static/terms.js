// The terms as the circuit reads them, and their hash (docs/attestation-format.md, section 6).

import { toInteger } from "./bytes.js";
import { isPublicKey } from "./babyjub.js";
import { sponge, tag } from "./poseidon.js";
import { fail } from "./refusal.js";

const [OBJECTIVES, TIERS] = [4, 4];
const ROUNDING = { floor: 0n, half_up: 1n, half_even: 2n };

/** termsHash of an agreement that can be attested. */
export function termsHashOf(agreement) {
  if (!isPublicKey(agreement.collectorKey)) {
    throw fail(
      "collector.babyjubjub_public_key",
      "collector is not a Baby Jubjub public key: it must be two coordinates below r, on the curve, in the prime-order " +
        "subgroup and not the identity",
    );
  }
  return sponge(tag("terms"), preimage(agreement));
}

/** The 48 inputs. */
function preimage({ docSha256, collectorKey, compensation, floorBps, objectives }) {
  const slots = Array.from({ length: OBJECTIVES }, (_, m) => objectives[m] ?? null);
  const tiersOf = (slot) => (slot && compensation.tiered?.get(slot.id)) ?? [];
  const row = (slot, member) => Array.from({ length: TIERS }, (_, k) => tiersOf(slot)[k]?.[member] ?? 0n);
  return [
    toInteger(docSha256.subarray(0, 16)),
    toInteger(docSha256.subarray(16)),
    ...collectorKey,
    flagsOf(compensation),
    compensation.cap,
    compensation.minimum,
    floorBps,
    ...slots.map((slot) => (slot ? 1n : 0n)),
    ...slots.map((slot) => slot?.targetPpb ?? 0n),
    ...slots.flatMap((slot) => row(slot, "belowPpb")),
    ...slots.flatMap((slot) => row(slot, "creditBps")),
  ];
}

function flagsOf({ tiersCombine, rounding, visibility, impact }) {
  const exact = impact ? 16n : 0n;
  return (
    exact | (tiersCombine === "sum" ? 1n : 0n) | (ROUNDING[rounding] << 1n) | (visibility === "committed" ? 8n : 0n)
  );
}
