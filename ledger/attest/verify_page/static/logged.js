// Checks about the log: that events are in it, in their place, and that a restatement follows what it replaces.

import { dayNs } from "./agreement.js";
import { fromHex, hex, concat, utf8 } from "./bytes.js";
import { dateText } from "./dates.js";
import { sha256 } from "./hashes.js";
import { canonicalBytes } from "./json.js";
import { leafHash, verifyInclusion } from "./merkle.js";
import { requireQuorum } from "./note.js";
import { require } from "./refusal.js";
import { checkShape } from "./shape.js";
import { requireSame } from "./case.js";
import { tables } from "./tables.js";

export function checkpoint(found) {
  const { origin, size } = found.checkpoint;
  return `checkpoint of ${origin} at size ${size} is signed`;
}

export function inclusion(found) {
  const { issued, bundle, checkpoint: signed } = found;
  const version = issued.statement_version;
  const name = statementName(found, version);
  require(issued.statement_id === name, `the statement should be called ${name}`);
  requireLogged(bundle.statement, signed, "statement_issued", streamOf(found), version - 1);
  const { header } = bundle.statement;
  const over = BigInt(header.recorded_at_ns) >= found.period.interval.endNs;
  require(over, "the statement was recorded before its period was over");
  requireOneTenant(bundle, header.tenant);
  bundle.seals.forEach((seal, index) => {
    require(seal.seq < bundle.statement.seq, `block ${index} was sealed after the statement`);
    requireSealed(found, seal, index);
    requireInTurn(bundle, seal, index);
  });
  return `statement and ${bundle.seals.length} seal(s) are in the log, of tenant ${header.tenant}`;
}

/** A stream is one of a tenant: events of another would leave room for a second one with the same name. */
function requireOneTenant(bundle, tenant) {
  const events = Object.values(bundle).flat();
  for (const { header, seq } of events.filter(
    (each) => typeof each === "object" && each !== null && "header" in each,
  )) {
    require(header.tenant === tenant, `event ${seq} is of tenant ${header.tenant}, the statement of ${tenant}`);
  }
}

/** What logged a notice that ended the terms; `inTime`: nobody could choose its day by what had happened. */
export function notice(found) {
  const { notice: given, bundle } = found;
  const event = bundle.notice;
  if (given === null) {
    require(event === undefined, "the log of a notice is given, and no notice ended the terms");
    return { inTime: true, detail: "no notice ended the terms" };
  }
  if (event !== undefined) {
    requireSame(event.payload.notice, given.document, "another notice was logged than the one given");
    requireLogged(event, found.checkpoint, "agreement_terminated", `agreement/${found.slaText}`, event.header.version);
  }
  const signed = ["issuer", "customer"].filter((name) => name in given.document.signatures);
  const day = dateText(given.effective);
  if (signed.length > 1) return { inTime: true, detail: `both parties agreed to end on ${day}` };
  const before = event !== undefined && BigInt(event.header.recorded_at_ns) < dayNs(found.agreement, given.effective);
  if (before)
    return { inTime: true, detail: `the notice of the ${signed[0]} was logged before ${day}, by the log's clock` };
  const detail =
    `no entry shows that the notice was given before ${day}: that its day was not chosen later is the word of the ` +
    signed[0];
  return { inTime: false, detail };
}

/** All versions before this one are in the log, and it says truly what it replaces and by how much it differs. */
export function restatement(found) {
  const { issued, bundle, checkpoint: signed } = found;
  const first = issued.statement_version === 1;
  for (const name of ["restates", "reason", "objective_deltas", "credit_delta"]) {
    require(name in issued !== first, `exactly a restatement has ${name}`);
  }
  require("previous" in bundle !== first, "exactly a restatement comes with the versions before it");
  if (first) return "it is the first version";
  let before = -1;
  found.earlier.forEach((payload, at) => {
    const [event, version] = [bundle.previous[at], at + 1];
    require(before < event.seq && event.seq < bundle.statement.seq, `version ${version} is not logged in its turn`);
    before = event.seq;
    requireLogged(event, signed, "statement_issued", streamOf(found), version - 1);
    const expected = {
      ...pick(issued, ["sla_id", "doc_sha256", "terms_version", "period"]),
      statement_version: version,
      statement_id: statementName(found, version),
    };
    requireSame(
      pick(payload, Object.keys(expected)),
      expected,
      `the event given for version ${version} is of another statement`,
    );
  });
  const replaced = bundle.previous.at(-1);
  const named = { statement_id: replaced.payload.statement_id, event_id: replaced.header.id };
  requireSame(
    pick(issued.restates, ["statement_id", "event_id"]),
    named,
    "it restates another statement than the version before it",
  );
  const deltas = differences(replaced.payload, issued, found.agreement.compensation.currency);
  for (const [name, value] of Object.entries(deltas)) {
    requireSame(issued[name], value, `${name} is not the difference from the version before it`);
  }
  return `it replaces ${named.statement_id}, which is in the log, and differs from it as it says`;
}

export function witnessQuorum(found, witnesses) {
  const { text, others } = found.checkpoint;
  const names = requireQuorum(text, others, witnesses);
  return `${names.length} of ${witnesses.vkeys.length} trusted witnesses cosigned the checkpoint (${names.join(", ")})`;
}

/** Throws unless an event is in the log, in its place of its stream, with this payload. */
export function requireLogged(event, signed, type, stream, version) {
  const { header, seq } = event;
  const { schema: newest, payload } = tables.events[type];
  require(header.type === type &&
    header.schema <= newest, `event ${seq} is not a ${type} of a schema from 1 to ${newest}`);
  require(header.stream === stream, `event ${seq} is in the stream ${header.stream}, not ${stream}`);
  require(header.version === version, `event ${seq} is version ${header.version} of its stream, not ${version}`);
  checkShape(payload, event.payload, "payload");
  const salted = concat(utf8("sla-ledger/payload/v1\n"), fromHex(event.salt), canonicalBytes(event.payload));
  require(hex(sha256(salted)) === header.payload_commitment, `the payload of event ${seq} is not the one in the log`);
  verifyInclusion(
    BigInt(seq),
    signed.size,
    leafHash(canonicalBytes(header)),
    event.inclusion.map(fromHex),
    signed.root,
  );
}

export const pick = (object, keys) => Object.fromEntries(keys.map((key) => [key, object[key]]));

const streamOf = (found) => `statement/${found.slaText}/${found.firstDay}`;
const statementName = (found, version) => `${found.slaText.slice(2, 14)}.${found.firstDay}.v${version}`;

/** The event that seals a block: the first one stands at the block's place in the stream, others after all those. */
function requireSealed({ issued, bundle, sealKey, checkpoint: signed }, seal, block) {
  const [stream, place] = [`seal/${sealKey}`, seal.header.version];
  const version = seal.payload.statement_version;
  if (version === undefined) {
    requireLogged(seal, signed, "block_sealed", stream, block);
    return;
  }
  require(version <= issued.statement_version, `block ${block} was sealed anew for a later version`);
  require(place >=
    bundle.seals.length, `block ${block} was sealed anew at place ${place} of its stream, before all were sealed`);
  requireLogged(seal, signed, "block_resealed", stream, place);
}

/** A block is sealed before the first version that counts by it, and replaced behind the version before that one. */
function requireInTurn(bundle, seal, block) {
  const versions = [...(bundle.previous ?? []), bundle.statement];
  // What was sealed first is what the first version with a root names.
  const rooted = versions.findIndex(({ payload }) => payload.telemetry_root !== null) + 1;
  const first = seal.payload.statement_version ?? rooted;
  if (seal.payload.statement_version > 1) {
    const behind = versions[first - 2].seq < seal.seq;
    require(behind, `block ${block} was sealed anew for version ${first} before version ${first - 1} was issued`);
  }
  const before = seal.seq < versions[first - 1].seq;
  require(before, `block ${block} was sealed after version ${first}, which is said to count by it`);
}

/** `objective_deltas`, of the objectives that differ, and `credit_delta` of two versions of a statement. */
function differences(old, issued, currency) {
  const [before, after] = [old, issued].map(({ objectives }) => new Map(objectives.map((each) => [each.id, each])));
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const objectives = names.filter((name) => !alike(before.get(name), after.get(name)));
  const [oldUnits, newUnits] = [old, issued].map(({ credit }) => credit?.minor_units ?? null);
  return {
    objective_deltas: objectives.map((name) => objectiveDelta(name, before.get(name), after.get(name))),
    credit_delta: {
      currency,
      old: oldUnits,
      new: newUnits,
      difference: String(BigInt(newUnits ?? 0) - BigInt(oldUnits ?? 0)),
    },
  };
}

const alike = (one, other) => JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
const sorted = (result) => Object.entries(result ?? {}).sort(([left], [right]) => (left < right ? -1 : 1));

function objectiveDelta(id, old, issued) {
  const delta = (name, [before, after] = [old?.[name] ?? null, issued?.[name] ?? null]) => ({
    old: before,
    new: after,
    difference: (after ?? 0) - (before ?? 0),
  });
  const undecided = delta(
    "undecided",
    [old && (old.undecided ?? 0), issued && (issued.undecided ?? 0)].map((each) => each ?? null),
  );
  return {
    id,
    good: delta("good"),
    valid: delta("valid"),
    state: { old: old?.state ?? null, new: issued?.state ?? null },
    ...(undecided.difference ? { undecided } : {}),
  };
}
