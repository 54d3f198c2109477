// The published JSON Schemas, as far as they are used: closed shapes, told apart by fixed words. A keyword that is not
// known here is refused and not passed over, because it might be the one that forbids something.

import { BadInput, fail } from "./refusal.js";

const SAYS_NOTHING = new Set(["$comment", "$schema", "title", "description"]);
const OF_TYPE = {
  object: new Set(["properties", "patternProperties", "required", "additionalProperties", "maxProperties"]),
  array: new Set(["items", "minItems", "maxItems"]),
  string: new Set(["pattern", "minLength", "maxLength", "decimalMinimum", "decimalMaximum"]),
  integer: new Set(["minimum", "maximum"]),
  boolean: new Set(),
  null: new Set(),
};
const patterns = new Map();

/** Throw a Refusal that names the first field which is not of a schema. */
export function checkShape(schema, value, at = "") {
  const rest = Object.keys(schema).filter((key) => !SAYS_NOTHING.has(key));
  if ("oneOf" in schema && rest.length === 1) return checkShape(alternative(schema.oneOf, value, at), value, at);
  if ("enum" in schema && rest.length === 1) {
    if (!schema.enum.includes(value)) throw fail(at, `${shown(value)} is not one of ${schema.enum.join(", ")}`);
    return undefined;
  }
  const known = OF_TYPE[schema.type];
  if (!known || rest.some((key) => key !== "type" && !known.has(key))) throw new Error(`unknown schema at ${at}`);
  return CHECKS[schema.type](schema, value, at);
}

/** What a verifier is given, by the formats: files are easily mixed up. */
const FILES = { "sla-ledger/bundle/v1": "a bundle", "sla-ledger/opening/v1": "an opening", "sla-ledger/trust/v1": "a trust file" };

/** A document of a schema; throws BadInput that says which document is not of it. */
export function readShape(schema, value, what) {
  try {
    checkShape(schema, value);
  } catch (error) {
    const isA = Object.hasOwn(FILES, value?.format) ? FILES[value.format] : null;
    const why = isA === null || isA.endsWith(what) ? error.message : `this is ${isA}`;
    throw new BadInput(`the ${what} is not of its format: ${why}`);
  }
  return value;
}

const CHECKS = {
  object: checkObject,
  array: checkList,
  string: checkText,
  integer(schema, value, at) {
    if (!Number.isSafeInteger(value)) throw fail(at, `must be a whole number, not ${shown(value)}`);
    if (value < schema.minimum || value > schema.maximum) {
      throw fail(at, `${value} must be between ${schema.minimum} and ${schema.maximum}`);
    }
  },
  boolean(schema, value, at) {
    if (typeof value !== "boolean") throw fail(at, `must be true or false, not ${shown(value)}`);
  },
  null(schema, value, at) {
    if (value !== null) throw fail(at, `must be nothing, not ${shown(value)}`);
  },
};

/** The alternative that a value claims to be: null, or the one whose fixed words it has. */
function alternative(choices, value, at) {
  const [nothing] = choices.filter((choice) => choice.type === "null");
  const others = choices.filter((choice) => choice !== nothing);
  if (nothing && value === null) return nothing;
  const fitting = others.filter((choice) => hasWords(choice, value));
  if (others.length === 1) return others[0];
  if (!fitting.length) throw fail(at, "is none of the documents that may stand here");
  return fitting[0];
}

function hasWords(choice, value) {
  if (typeof value !== "object" || value === null) return false;
  const fixed = Object.entries(choice.properties ?? {}).filter(([, member]) => member.enum?.length === 1);
  return fixed.every(([key, member]) => value[key] === member.enum[0] || !choice.required.includes(key));
}

function checkObject(schema, value, at) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw fail(at, `must be a mapping, not ${shown(value)}`);
  }
  const keys = Object.keys(value);
  if (schema.maxProperties !== undefined && keys.length > schema.maxProperties) {
    throw fail(at, `has ${keys.length} keys; at most ${schema.maxProperties}`);
  }
  for (const key of keys) {
    const member = memberOf(schema, key);
    const path = at ? `${at}.${key}` : key;
    if (member) checkShape(member, value[key], path);
    else if (schema.additionalProperties === false) throw fail(path.slice(0, 200), "unknown key");
  }
  for (const key of schema.required ?? []) {
    if (!Object.hasOwn(value, key)) throw fail(at ? `${at}.${key}` : key, "is missing");
  }
}

function memberOf(schema, key) {
  if (schema.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return Object.entries(schema.patternProperties ?? {}).find(([pattern]) => matches(pattern, key))?.[1];
}

function checkList(schema, value, at) {
  if (!Array.isArray(value)) throw fail(at, `must be a list, not ${shown(value)}`);
  if (value.length < schema.minItems || value.length > schema.maxItems) {
    throw fail(at, `must have ${schema.minItems} to ${schema.maxItems} entries, has ${value.length}`);
  }
  value.forEach((item, index) => checkShape(schema.items, item, `${at}[${index}]`));
}

function checkText(schema, value, at) {
  if (typeof value !== "string") throw fail(at, `must be a string, not ${shown(value)}`);
  // Characters, not UTF-16 units.
  const length = [...value].length;
  const least = schema.minLength ?? 0;
  if (length < least || length > schema.maxLength) {
    throw fail(at, `must have ${least} to ${schema.maxLength} characters, has ${length}`);
  }
  if (schema.pattern !== undefined && !matches(schema.pattern, value)) {
    throw fail(at, `${shown(value)} is not ${schema.description ?? "of its pattern"}`);
  }
  if (schema.decimalMaximum === undefined) return;
  if (BigInt(value) < BigInt(schema.decimalMinimum) || BigInt(value) > BigInt(schema.decimalMaximum)) {
    throw fail(at, `${value} must be between ${schema.decimalMinimum} and ${schema.decimalMaximum}`);
  }
}

function matches(pattern, text) {
  if (!patterns.has(pattern)) patterns.set(pattern, new RegExp(pattern, "u"));
  return patterns.get(pattern).test(text);
}

function shown(value) {
  return (JSON.stringify(value) ?? String(value)).slice(0, 60);
}
