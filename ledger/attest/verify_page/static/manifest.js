// A verification key under the name that its manifest gives it.

import { require } from "./refusal.js";
import { tables } from "./tables.js";

/** The manifest names this key and the circuit that is due, and a development key stands on test chains alone. */
export function requireKnownKey({ bundle }, { manifest, circuit }, { circuitId }, due) {
  require(manifest.circuit_id === circuitId, "the manifest names another key (circuit_id)");
  require(manifest.circuit === circuit, "the manifest names another circuit");
  require(circuit === due.name, due.message);
  const chainId = bundle.context?.chain_id ?? "0";
  require(!manifest.dev_unsafe ||
    tables.testChains.includes(chainId), `a development key is used on chain ${chainId}; it proves nothing there`);
  return `${manifest.circuit}, circuit id ${circuitId.slice(0, 16)}...`;
}
