// The periods of an agreement: a grid of dates from an anchor on, cut to the term; and the windows that fill a period.

import { dayStartNs, loadZone } from "./calendar.js";
import { SECOND_NS, addMonths, checkDay, civil, dateText, lengthDays, lengthText, sameLength } from "./dates.js";
import { interval } from "./interval.js";
import { Refusal, fail } from "./refusal.js";

const MAX_WINDOWS = 100_000n;
const MAX_PART_DAYS = 999;

/** What a period is called: `2023-12-19/P1D`. */
export const periodName = (period) => `${dateText(period.first)}/${lengthText(period.length)}`;

/** `first`, `until` and `anchor` are days; `length` and `step` calendar lengths; `dayStartS` seconds after midnight. */
export class PeriodGrid {
  constructor(terms) {
    Object.assign(this, terms);
    this.rolling = !sameLength(this.step, this.length);
    [this.from, this.to] = this.bounds();
  }

  boundary(index) {
    if (this.step.unit === "M") return addMonths(this.anchor, index * this.step.count);
    return checkDay(this.anchor + index * lengthDays(this.step));
  }

  /** Every period in order; throws for one that the zone has no instants for. */
  *all() {
    for (let index = this.from; index <= this.to; index += 1) yield this.period(index);
  }

  /** The period whose first local date is `first`; throws if none is. */
  starting(first) {
    const index = this.indexOf(first);
    const found = index >= this.from && index <= this.to ? this.period(index) : null;
    if (found?.first === first) return found;
    throw fail(
      "period",
      `no period of this agreement starts on ${dateText(first)}: periods of ${lengthText(this.length)} run from ` +
        `${dateText(this.first)} to ${dateText(this.until)}, counted from ${dateText(this.anchor)}`,
    );
  }

  /** The whole that holds a local date, or the one `back` steps before it: as if the term had no bounds. */
  uncut(first, back = 0) {
    const [start, end] = this.dates(this.indexOf(first) - back);
    return this.make(start, this.length, end);
  }

  period(index) {
    const [start, end] = this.dates(index);
    const whole = this.make(start, this.length, end);
    const [first, last] = [Math.max(start, this.first), Math.min(end, this.until)];
    if (first === start && last === end) return whole;
    const part = this.make(first, { count: last - first, unit: "D" }, last);
    return { ...part, whole: whole.interval };
  }

  /** The date on which the `count`-th cycle after the one of a period ends. */
  cyclesAfter(period, count) {
    return this.boundary(this.indexOf(period.first) + 1 + count);
  }

  make(first, length, end) {
    const zone = loadZone(this.zone);
    const [startNs, endNs] = [first, end].map((day) => dayStartNs(day, zone, this.dayStartS));
    if (startNs >= endNs) {
      throw new Refusal(
        `${dateText(first)} does not exist in ${this.zone}, so no period ${lengthText(length)} starts on it`,
      );
    }
    return { first, length, zone: this.zone, interval: interval(startNs, endNs), whole: null };
  }

  bounds() {
    let [from, to] = [this.indexOf(this.first), this.indexOf(this.until)];
    if (this.boundary(from) < this.first && !this.keepsFirst) from += 1;
    while (to >= from && !this.keptLast(to)) to -= 1;
    return [from, to];
  }

  keptLast(index) {
    const [start, end] = this.dates(index);
    return start < this.until && (end <= this.until || this.keepsLast);
  }

  dates(index) {
    const start = this.boundary(index);
    // Of months not from the start, which may be the last day of a month that is too short for the anchor's.
    if (this.step.unit === "M") {
      return [start, addMonths(this.anchor, index * this.step.count + this.length.count)];
    }
    if (this.length.unit === "M") return [start, addMonths(start, this.length.count)];
    return [start, checkDay(start + lengthDays(this.length))];
  }

  indexOf(day) {
    if (this.step.unit !== "M") return Math.floor((day - this.anchor) / lengthDays(this.step));
    const [[year, month], [anchorYear, anchorMonth]] = [civil(day), civil(this.anchor)];
    const index = Math.floor(((year - anchorYear) * 12 + month - anchorMonth) / this.step.count);
    return this.boundary(index) <= day ? index : index - 1;
  }
}

/** How many equal windows fill a period; throws where they do not, or are too many. */
export function countWindows(period, windowSeconds) {
  const { startNs, endNs } = period.interval;
  const [duration, window] = [(endNs - startNs) / SECOND_NS, BigInt(windowSeconds)];
  const name = periodName(period);
  if (duration < window) {
    throw fail(
      "window",
      `a window of ${window} s is longer than the period ${name} of ${duration} s; agree on a shorter window`,
    );
  }
  if (duration % window) {
    throw fail(
      "window",
      `the period ${name} lasts ${duration} s in ${period.zone}, which is not a whole number of ${window} s windows; ` +
        "agree on a shorter window",
    );
  }
  const count = duration / window;
  if (count > MAX_WINDOWS) {
    throw fail("window", `${name} would have ${count} windows; agree on longer ones, at most ${MAX_WINDOWS}`);
  }
  return Number(count);
}

/** Windows of the longest period of a grid; throws where the term holds no period, or windows do not fill one. */
export function mostWindows(grid, windowSeconds) {
  let most = 0;
  for (const period of grid.all()) {
    if (period.whole && period.length.count > MAX_PART_DAYS) {
      throw fail(
        "partial_periods",
        `prorate: the part from ${dateText(period.first)} has ${period.length.count} days, and its name can say ` +
          `${MAX_PART_DAYS}; agree on shorter periods`,
      );
    }
    most = Math.max(most, countWindows(period, windowSeconds));
  }
  if (!most) {
    throw fail(
      "period",
      `no whole period of ${lengthText(grid.length)} fits between effective.from and effective.until`,
    );
  }
  return most;
}

/** What of a total that belongs to a whole time belongs to a part of it: each cut by largest remainder. */
export function shareOfTime(total, whole, part) {
  const before = (instantNs) => {
    const low = instantNs > whole.startNs ? instantNs : whole.startNs;
    const at = low < whole.endNs ? low : whole.endNs;
    const [weight, all] = [at - whole.startNs, whole.endNs - whole.startNs];
    const [share, rest] = [(total * weight) / all, (total * weight) % all];
    // Of two parts, the one with the larger remainder has the unit; of equal ones the earlier.
    return 2n * rest >= all && rest ? share + 1n : share;
  };
  return before(part.endNs) - before(part.startNs);
}
