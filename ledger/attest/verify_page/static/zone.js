// The rules of one time zone, from a TZif file (RFC 9636): the turns that it lists, and the rule that follows the last.

import { civil, dayOf } from "./dates.js";

const HEADER = 44;
const DAY_S = 86_400;

/** A zone: `offset(s)` is how far its clocks are ahead of UTC at a POSIX second. */
export class Zone {
  constructor(bytes) {
    this.starts = new Map();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const first = counts(view, 0);
    // Version 2 and later: a second block of 64-bit times after the first.
    const at = HEADER + blockLength(first, 4);
    const { timecnt, typecnt } = counts(view, at);
    const times = at + HEADER;
    const [indexes, types] = [times + 8 * timecnt, times + 9 * timecnt];
    const offsets = Array.from({ length: typecnt }, (_, type) => view.getInt32(types + 6 * type));
    this.times = Array.from({ length: timecnt }, (_, index) => Number(view.getBigInt64(times + 8 * index)));
    this.offsets = Array.from({ length: timecnt }, (_, index) => offsets[bytes[indexes + index]]);
    this.first = offsets[firstType(view, types, typecnt)];
    const footer = at + HEADER + blockLength(counts(view, at), 8);
    this.rule = parseRule(new TextDecoder("ascii").decode(bytes.subarray(footer + 1, bytes.length - 1)));
  }

  offset(second) {
    const index = lastAtMost(this.times, second);
    if (index < 0 && this.times.length) return this.first;
    if (index < this.times.length - 1 || !this.rule) return this.offsets[index] ?? this.first;
    return this.rule.dst === null ? this.rule.std : ruledOffset(this.rule, second);
  }

  /** The instants in [early, late] at which the offset changes, in order. */
  turnsBetween(early, late) {
    const last = this.times.at(-1) ?? -Infinity;
    const found = this.times.filter((time) => time > early && time < late);
    if (this.rule && this.rule.dst !== null && late > last) {
      for (let year = yearOf(early) - 1; year <= yearOf(late) + 1; year += 1) {
        found.push(...turnsOf(this.rule, year).filter((time) => time > Math.max(early, last) && time < late));
      }
    }
    return found.sort((a, b) => a - b);
  }
}

function counts(view, at) {
  const [isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt] = [0, 1, 2, 3, 4, 5].map((index) =>
    view.getUint32(at + 20 + 4 * index),
  );
  return { isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt };
}

function blockLength({ isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt }, timeBytes) {
  return timecnt * (timeBytes + 1) + typecnt * 6 + charcnt + leapcnt * (timeBytes + 4) + isstdcnt + isutcnt;
}

/** What holds before the first turn: the first type that is no summer time, else the first. */
function firstType(view, types, typecnt) {
  for (let type = 0; type < typecnt; type += 1) if (view.getUint8(types + 6 * type + 4) === 0) return type;
  return 0;
}

function lastAtMost(times, second) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= second) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** A POSIX TZ text such as `CET-1CEST,M3.5.0,M10.5.0/3`; offsets are seconds ahead of UTC. */
function parseRule(text) {
  if (!text) return null;
  const match = /^(?:[A-Za-z]+|<[^>]+>)([+-]?[\d:]+)(?:(?:[A-Za-z]+|<[^>]+>)([+-]?[\d:]+)?,([^,]+),([^,]+))?$/.exec(
    text,
  );
  if (!match) throw new RangeError(`no TZ rule: ${text}`);
  const std = -seconds(match[1]);
  if (match[3] === undefined) return { std, dst: null };
  const dst = match[2] === undefined ? std + 3600 : -seconds(match[2]);
  return { std, dst, starts: parseDay(match[3]), ends: parseDay(match[4]) };
}

function seconds(text) {
  const [hours, minutes = 0, rest = 0] = text.replace(/^[+-]/, "").split(":").map(Number);
  return (text.startsWith("-") ? -1 : 1) * (hours * 3600 + minutes * 60 + rest);
}

function parseDay(text) {
  const [date, time = "2"] = text.split("/");
  const at = seconds(time);
  if (date.startsWith("M")) {
    const [month, week, weekday] = date.slice(1).split(".").map(Number);
    return { at, day: (year) => weekdayOf(year, month, week, weekday) };
  }
  const count = Number(date.replace("J", ""));
  // Jn never counts 29 February; n counts it, from 0.
  const leap = (year) => dayOf(year, 3, 1) - dayOf(year, 2, 28) === 2;
  const skipped = (year) => (leap(year) && count >= 60 ? 1 : 0);
  return { at, day: (year) => dayOf(year, 1, 1) + (date.startsWith("J") ? count - 1 + skipped(year) : count) };
}

function weekdayOf(year, month, week, weekday) {
  const first = dayOf(year, month, 1);
  // 1970-01-01 was a Thursday.
  const found = first + ((((weekday - (first + 4)) % 7) + 7) % 7) + (week - 1) * 7;
  const next = month === 12 ? dayOf(year + 1, 1, 1) : dayOf(year, month + 1, 1);
  return found >= next ? found - 7 : found;
}

const yearOf = (second) => civil(Math.floor(second / DAY_S))[0];

/** The two turns of a year, each told by the clock that it ends. */
function turnsOf({ std, dst, starts, ends }, year) {
  return [starts.day(year) * DAY_S + starts.at - std, ends.day(year) * DAY_S + ends.at - dst];
}

function ruledOffset(rule, second) {
  const year = yearOf(second);
  const [starts, ends] = turnsOf(rule, year);
  const summer = starts < ends ? second >= starts && second < ends : !(second >= ends && second < starts);
  return summer ? rule.dst : rule.std;
}
