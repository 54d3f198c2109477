// Batch roots: that the issuer published the statement beside a state of its ledger, on each chain the bundle names.
// They show nothing about the proof. The leaf is worked out from the statement, never taken from the bundle.

import { compareBytes, concat, equal, fromHex, utf8 } from "./bytes.js";
import { nameOf } from "./formats.js";
import { keccak256 } from "./hashes.js";
import { canonicalBytes } from "./json.js";
import { leafHash, verifyInclusion } from "./merkle.js";
import { require } from "./refusal.js";
import { decodeTransaction, requirePublishes } from "./transaction.js";

/** For each root the name of its line, what checks it, and the line of its pin. */
export function rootChecks(found, trust) {
  const roots = found.bundle.roots ?? [];
  const ids = roots.map((root) => BigInt(root.chain_id));
  const ordered = ids.every((id, at) => at === 0 || ids[at - 1] < id);
  return roots.map((root) => ({
    check: `root on chain ${root.chain_id}`,
    run() {
      require(ordered, "there is one root of each chain, by chain id");
      return published(found, root, trust);
    },
    pin: { check: `pin: root on chain ${root.chain_id}`, ...pinOf(root, trust) },
  }));
}

function published(found, root, trust) {
  const { bundle, checkpoint: newest } = found;
  const { origin } = newest;
  const [size, treeRoot] = [BigInt(root.size), fromHex(root.root)];
  require(size !== newest.size ||
    equal(treeRoot, newest.root), `the checkpoint of size ${size} that was anchored is another than the signed one`);
  const { seq, header } = bundle.statement;
  verifyInclusion(BigInt(seq), size, leafHash(canonicalBytes(header)), root.inclusion.map(fromHex), treeRoot);
  const [batchRoot, proved] = [word(root.batch_root), bundle.proof !== null];
  require((root.siblings !== null) === proved, "exactly a statement with a proof has a leaf in the batch");
  if (proved) {
    const top = root.siblings.map(word).reduce(pair, nameOf(found.signals.ctx, found.proofs).leaf);
    require(equal(top, batchRoot), "the path does not lead from this statement to the root");
  }
  const transaction = decodeTransaction(fromHex(root.raw_transaction));
  require(equal(word(root.tx_hash), transaction.hash), "tx_hash is not the hash of the transaction");
  const issuer = pinnedChain(root, trust)?.issuer ?? found.agreement.issuer.address;
  require(root.issuer === issuer, `the root is in the name of ${root.issuer}, not of the issuer ${issuer}`);
  const publication = { logId: keccak256(utf8(origin)), size, root: treeRoot, batchRoot };
  const where = { chainId: BigInt(root.chain_id), registry: root.registry, issuer };
  requirePublishes(transaction, publication, where);
  const what = proved ? "the statement's leaf" : "the entry of the statement";
  return `the issuer's transaction ${root.tx_hash.slice(0, 18)}... publishes ${what} with the log at size ${size}`;
}

const word = (text) => fromHex(text.slice(2));
const pair = (left, right) => keccak256(concat(...[left, right].sort(compareBytes)));

/** What the trust file says of a root's chain; null where it does not name it. */
function pinnedChain(root, trust) {
  if (trust === null) return null;
  if (trust.chain_id === root.chain_id) return { chain_id: trust.chain_id, registry: trust.registry };
  return (trust.root_chains ?? []).find((each) => each.chain_id === root.chain_id) ?? null;
}

function pinOf(root, trust) {
  if (trust === null) return { outcome: "ASSUMED", detail: "nothing is pinned; anyone could have made this" };
  const pinned = pinnedChain(root, trust);
  if (pinned === null) {
    return { outcome: "NOT CHECKED", detail: "the trust file does not name this chain (root_chains)" };
  }
  if (pinned.registry !== root.registry) {
    const detail = `${root.registry} is not pinned; the trust file has ${pinned.registry}`;
    return { outcome: "FAIL", detail };
  }
  return { outcome: "PASS", detail: "as pinned" };
}
