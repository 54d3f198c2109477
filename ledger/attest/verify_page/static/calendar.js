// Local dates of an IANA zone as UTC instants. Dates are whole days since 1970-01-01, instants seconds or nanoseconds.
// The zone rules are those of the tzdata release in the page and never the browser's, so that two verifiers agree.

import { fromBase64 } from "./bytes.js";
import { FIRST_DAY, LAST_DAY, SECOND_NS, civil, dateText, dayOf, floorDiv, parseDate } from "./dates.js";
import { Refusal } from "./refusal.js";
import { tables } from "./tables.js";
import { Zone } from "./zone.js";

const DAY_S = 86_400;
const [FIRST_INSTANT_NS, END_INSTANT_NS] = [dayOf(1971, 1, 1), dayOf(2262, 1, 1)].map(
  (day) => BigInt(day) * BigInt(DAY_S) * SECOND_NS,
);
const zones = new Map();

/** A zone by its IANA name; throws. `offset(s)` is what its clocks are ahead of UTC at an instant, in seconds. */
export function loadZone(name) {
  if (!Object.hasOwn(tables.zones, name)) {
    throw new Refusal(`unknown time zone '${name.slice(0, 64)}'; write an IANA name such as Europe/Berlin`);
  }
  if (!zones.has(name)) zones.set(name, new Zone(fromBase64(tables.zoneRules[tables.zones[name]])));
  return zones.get(name);
}

/**
 * The first instant of a local day, which starts `startS` seconds after midnight by the wall clock. Where the clock
 * jumps over that time the day starts with the jump; where it comes twice, with the first.
 */
export function dayStartNs(day, zone, startS = 0) {
  const key = `${day}/${startS}`;
  let found = zone.starts.get(key);
  if (found === undefined) {
    found = BigInt(firstShowing(zone, day * DAY_S + startS)) * SECOND_NS;
    zone.starts.set(key, found);
  }
  return found;
}

/** The earliest instant at which a zone's clocks show at least `wall`, looking forward over jumps and turns. */
function firstShowing(zone, wall) {
  // No zone is more than a day away from UTC.
  let [early, late] = [wall - DAY_S, wall + DAY_S];
  const shows = (s) => s + zone.offset(s);
  const turns = zone.turnsBetween(early, late);
  // Between turns the clock runs evenly, so each stretch is looked at by itself, from the first on.
  for (const [start, end] of stretches(early, late, turns)) {
    if (shows(end - 1) < wall) continue;
    const exact = wall - zone.offset(start);
    return Math.max(exact, start);
  }
  return late;
}

function* stretches(early, late, turns) {
  let start = early;
  for (const turn of turns) {
    yield [start, turn];
    start = turn;
  }
  yield [start, late];
}

/** [year, month] that a zone's clocks show at an instant. */
export function localMonth(instantNs, zoneName) {
  const seconds = Number(floorNs(instantNs, SECOND_NS));
  const [year, month] = civil(floorDiv(seconds + loadZone(zoneName).offset(seconds), DAY_S));
  return [year, month];
}

/** The local day that a zone's clocks show at an instant; days begin `startS` seconds after midnight. */
export function localDay(instantNs, zoneName, startS) {
  const seconds = Number(floorNs(instantNs, SECOND_NS));
  return floorDiv(seconds + loadZone(zoneName).offset(seconds) - startS, DAY_S);
}

const INSTANT = new RegExp(
  "^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([01][0-9]|2[0-3]):([0-9]{2}):([0-9]{2})(?:\\.([0-9]{1,9}))?" +
    "(Z|z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))$",
);

/** Nanoseconds of an RFC 3339 instant of the years 1971 to 2261. */
export function parseInstantNs(text) {
  const match = text.length <= 40 ? INSTANT.exec(text) : null;
  const refusal = new Refusal(`'${text.slice(0, 40)}' is not an instant; write 2023-12-19T00:00:00Z`);
  if (!match) throw refusal;
  const [day, hours, minutes, rest] = [parseDate(match[1]), ...match.slice(2, 5).map(Number)];
  if (minutes > 59 || rest > 59) throw refusal;
  const ahead = match[7] ? (match[7] === "-" ? -1 : 1) * (Number(match[8]) * 3600 + Number(match[9]) * 60) : 0;
  const seconds = BigInt(day * DAY_S + hours * 3600 + minutes * 60 + rest - ahead);
  const ns = seconds * SECOND_NS + BigInt((match[5] ?? "").padEnd(9, "0"));
  if (ns < FIRST_INSTANT_NS || ns >= END_INSTANT_NS) throw refusal;
  return ns;
}

function floorNs(value, by) {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}

/** RFC 3339 in UTC, with nine fractional digits unless they are all zero. */
export function instantText(ns) {
  const seconds = floorNs(ns, SECOND_NS);
  const fraction = ns - seconds * SECOND_NS;
  const day = Number(floorNs(seconds, BigInt(DAY_S)));
  if (day < FIRST_DAY || day > LAST_DAY) return `${ns} ns since 1970-01-01T00:00:00Z`;
  const rest = Number(seconds - BigInt(day) * BigInt(DAY_S));
  const clock = [rest / 3600, (rest / 60) % 60, rest % 60].map((part) => String(Math.floor(part)).padStart(2, "0"));
  return `${dateText(day)}T${clock.join(":")}${fraction ? `.${String(fraction).padStart(9, "0")}` : ""}Z`;
}
