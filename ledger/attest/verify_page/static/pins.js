// What only a reader's own pins can give meaning: whose log, whose keys, which circuit, which chain and registry.

/** One line for each pinned value: `name`, `outcome`, `detail`. Without a trust file each is assumed. */
export function* pinLines(bundle, trust) {
  const tenant = trust !== null && "tenant" in trust ? { tenant: bundle.statement.header.tenant } : {};
  for (const [name, value] of Object.entries({ ...valuesOf(bundle), ...tenant })) {
    const check = `pin: ${name}`;
    if (trust === null) {
      yield { check, outcome: "ASSUMED", detail: "nothing is pinned; anyone could have made this" };
      continue;
    }
    const pinned = pinnedValues(trust, sizeOf(bundle))[name];
    const held = pinned.some((pin) => equalPins(pin, value));
    const known = pinned.map(shown).join(", ") || "none";
    const detail = held ? "as pinned" : `${shown(value)} is not pinned; the trust file has ${known}`;
    yield { check, outcome: held ? "PASS" : "FAIL", detail };
  }
}

function valuesOf({ agreement: { parties }, proof, incident_proof: second, context, log }) {
  // The first line of a checkpoint is its origin; the check "log checkpoint" has parsed it with the rest.
  const values = {
    log: { origin: log.checkpoint.split("\n", 1)[0], vkey: log.vkey },
    issuer: parties.issuer.ed25519_public_key,
    customer: parties.customer.ed25519_public_key,
  };
  if (proof === null || context === null) return values;
  const circuits = { circuit: proof, ...(second ? { "incident circuit": second } : {}) };
  for (const [name, { manifest }] of Object.entries(circuits)) {
    values[name] = { circuit_id: manifest.circuit_id, dev_unsafe: manifest.dev_unsafe };
  }
  return { ...values, chain: context.chain_id, registry: context.registry };
}

function pinnedValues(trust, size) {
  return {
    log: pinnedLogs(trust, size),
    issuer: [trust.issuer_ed25519_public_key],
    customer: [trust.customer_ed25519_public_key],
    circuit: trust.circuits,
    "incident circuit": trust.circuits,
    chain: [trust.chain_id],
    registry: [trust.registry],
    tenant: [trust.tenant],
  };
}

/** The log with each key that counts for a checkpoint of a size; one in `log_keys` counts for its sizes only. */
function pinnedLogs({ log: { origin, vkey }, log_keys: ranges = [] }, size) {
  const within = ({ from_size: from, until_size: until }) =>
    BigInt(from) <= size && (until === null || size < BigInt(until));
  const vkeys = ranges.filter(within).map((each) => each.vkey);
  if (!ranges.some((each) => each.vkey === vkey)) vkeys.unshift(vkey);
  return vkeys.map((each) => ({ origin, vkey: each }));
}

/** The size that the bundle's checkpoint states; -1, which no key covers, where it states none. */
function sizeOf({ log }) {
  const line = log.checkpoint.split("\n", 2)[1];
  return line !== undefined && /^(?:0|[1-9][0-9]{0,18})$/.test(line) ? BigInt(line) : -1n;
}

function equalPins(one, other) {
  if (typeof one === "string" || typeof other === "string") return one === other;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key]);
}

function shown(value) {
  if (typeof value === "object" && "circuit_id" in value) {
    return `${value.circuit_id.slice(0, 16)}... (dev_unsafe ${value.dev_unsafe})`;
  }
  const text = typeof value === "object" ? `${value.origin} with ${value.vkey}` : value;
  return text.length <= 96 ? text : `${text.slice(0, 93)}...`;
}
