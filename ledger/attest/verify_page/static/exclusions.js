// What an agreement lets leave the counts by time, and which of the listed exclusions are honoured under it.

import { localMonth } from "./calendar.js";
import { SECOND_NS, parseWindowSeconds } from "./dates.js";
import { clip, compare, interval, union } from "./interval.js";
import { convert, fail } from "./refusal.js";

/** The clauses of a shape-checked agreement: `classes` of maintenance, `carveOuts`, and the cap of a period. */
export function readExclusionTerms(document) {
  const taken = new Set(document.exclusions.map((clause) => clause.id));
  const take = (item, at) => {
    if (taken.has(item.id))
      throw fail(`${at}.id`, `'${item.id}' is the id of another clause already; name each clause once`);
    taken.add(item.id);
  };
  const classes = new Map();
  (document.maintenance?.classes ?? []).forEach((item, index) => {
    const at = `maintenance.classes[${index}]`;
    take(item, at);
    const duration = (name) =>
      name in item ? BigInt(convert(`${at}.${name}`, item[name], parseWindowSeconds)) * SECOND_NS : null;
    classes.set(item.id, {
      id: item.id,
      longestNs: duration("longest"),
      most: item.at_most ?? null,
      noticeNs: duration("notice"),
      automatic: item.automatic ?? false,
    });
  });
  const carveOuts = new Set();
  (document.carve_outs ?? []).forEach((item, index) => {
    take(item, `carve_outs[${index}]`);
    carveOuts.add(item.id);
  });
  const cap = document.maintenance?.cap_minutes;
  return { classes, carveOuts, capNs: cap === undefined ? null : BigInt(cap) * 60n * SECOND_NS };
}

/** What the terms leave of each listed exclusion inside a period, by id; null: nothing. */
export function honoured(terms, zone, listed, period) {
  const ruled = rule(terms, zone, listed.map(exclusionOf));
  const cappedAtNs = cappedAt(terms, ruled, period);
  const found = new Map();
  for (const { exclusion, part } of ruled) {
    let clipped = part && clip(part, period);
    if (clipped && terms.classes.has(exclusion.clause) && cappedAtNs < clipped.endNs) {
      clipped = cappedAtNs <= clipped.startNs ? null : { startNs: clipped.startNs, endNs: cappedAtNs };
    }
    if (clip(exclusion.interval, period)) found.set(exclusion.id, clipped);
  }
  return found;
}

function exclusionOf(payload) {
  return {
    id: payload.exclusion_id,
    clause: payload.clause,
    interval: interval(BigInt(payload.from_ns), BigInt(payload.to_ns)),
    announcedAtNs: payload.announced_at_ns === null ? null : BigInt(payload.announced_at_ns),
    approvedBy: payload.approved_by,
  };
}

/** Each exclusion by start with the part of it that the limits of its class leave. */
function rule(terms, zone, exclusions) {
  const used = new Map();
  const order = (a, b) =>
    compare(a.interval.startNs, b.interval.startNs) ||
    compare(a.interval.endNs, b.interval.endNs) ||
    compareCodePoints(a.id, b.id);
  return [...exclusions].sort(order).map((each) => ({ exclusion: each, part: partOf(terms, zone, each, used) }));
}

function partOf(terms, zone, exclusion, used) {
  const kind = terms.classes.get(exclusion.clause);
  if (!kind && !terms.carveOuts.has(exclusion.clause)) return null;
  if (exclusion.approvedBy === null && !kind?.automatic) return null;
  if (!kind) return exclusion.interval;
  const { startNs, endNs } = exclusion.interval;
  if (kind.noticeNs !== null) {
    if (exclusion.announcedAtNs === null || exclusion.announcedAtNs > startNs - kind.noticeNs) return null;
  }
  if (kind.most !== null) {
    const place = `${kind.id}/${calendarUnit(startNs, zone, kind.most.per)}`;
    used.set(place, (used.get(place) ?? 0) + 1);
    if (used.get(place) > kind.most.count) return null;
  }
  const longest = kind.longestNs;
  return longest === null || endNs - startNs <= longest ? exclusion.interval : { startNs, endNs: startNs + longest };
}

/** The instant at which the maintenance of a period reaches its cap; the period's end where it does not. */
function cappedAt(terms, ruled, period) {
  let left = terms.capNs;
  if (left === null) return period.endNs;
  const parts = ruled
    .filter(({ exclusion, part }) => part && terms.classes.has(exclusion.clause))
    .map(({ part }) => clip(part, period))
    .filter((part) => part);
  for (const part of union(parts)) {
    const duration = part.endNs - part.startNs;
    if (duration > left) return part.startNs + left;
    left -= duration;
  }
  return period.endNs;
}

function calendarUnit(instantNs, zone, unit) {
  const [year, month] = localMonth(instantNs, zone);
  return `${year}/${unit === "month" ? month : Math.floor((month - 1) / 3)}`;
}

function compareCodePoints(left, right) {
  const [a, b] = [left, right].map((text) => Array.from(text, (character) => character.codePointAt(0)));
  const at = a.findIndex((point, index) => point !== b[index]);
  return at < 0 ? a.length - b.length : a[at] - (b[at] ?? -1);
}
