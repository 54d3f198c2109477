// The ledger's tree (RFC 6962): leaf hashes, and the root that an audit path leads to (RFC 9162, section 2.1.3.2).

import { concat, equal } from "./bytes.js";
import { sha256 } from "./hashes.js";
import { Refusal } from "./refusal.js";

export const MAX_TREE_SIZE = 2n ** 63n - 1n;

export const leafHash = (entry) => sha256(concat(Uint8Array.of(0), entry));
const nodeHash = (left, right) => sha256(concat(Uint8Array.of(1), left, right));

/** Return quietly only if `path` proves that a leaf hash is leaf `index` of the tree (size, root). */
export function verifyInclusion(index, size, leaf, path, root) {
  if (index >= size) throw new Refusal(`The proof places leaf ${index} in a tree of ${size} leaves.`);
  let [position, last, found] = [index, size - 1n, leaf];
  const wrongLength = () => new Refusal(`A proof of ${path.length} hashes does not fit its tree sizes.`);
  for (const sibling of path) {
    if (last === 0n) throw wrongLength();
    if (position & 1n || position === last) {
      found = nodeHash(sibling, found);
      while (position && !(position & 1n)) {
        position >>= 1n;
        last >>= 1n;
      }
    } else {
      found = nodeHash(found, sibling);
    }
    position >>= 1n;
    last >>= 1n;
  }
  if (last) throw wrongLength();
  if (!equal(found, root)) {
    throw new Refusal(`The inclusion proof of leaf ${index} does not lead to the root of size ${size}.`);
  }
}
