// Dates of the Gregorian calendar as whole days since 1970-01-01, and calendar lengths.

import { Refusal } from "./refusal.js";

export const SECOND_NS = 1_000_000_000n;
export const DAY_NS = 86_400n * SECOND_NS;
// Years 1 to 9999, which is what a date can be.
export const [FIRST_DAY, LAST_DAY] = [-719_162, 2_932_896];

export const floorDiv = (value, by) => Math.floor(value / by);

/** The day of a civil date of the Gregorian calendar. */
export function dayOf(year, month, date) {
  const shifted = month <= 2 ? year - 1 : year;
  const era = floorDiv(shifted, 400);
  const ofEra = shifted - era * 400;
  const ofYear = floorDiv(153 * (month + (month > 2 ? -3 : 9)) + 2, 5) + date - 1;
  return era * 146_097 + ofEra * 365 + floorDiv(ofEra, 4) - floorDiv(ofEra, 100) + ofYear - 719_468;
}

/** [year, month, date] of a day. */
export function civil(day) {
  const shifted = day + 719_468;
  const era = floorDiv(shifted, 146_097);
  const ofEra = shifted - era * 146_097;
  const year = floorDiv(ofEra - floorDiv(ofEra, 1460) + floorDiv(ofEra, 36_524) - floorDiv(ofEra, 146_096), 365);
  const ofYear = ofEra - (365 * year + floorDiv(year, 4) - floorDiv(year, 100));
  const index = floorDiv(5 * ofYear + 2, 153);
  const month = index + (index < 10 ? 3 : -9);
  return [year + era * 400 + (month <= 2 ? 1 : 0), month, ofYear - floorDiv(153 * index + 2, 5) + 1];
}

export function dateText(day) {
  const [year, month, date] = civil(day);
  return [String(year).padStart(4, "0"), ...[month, date].map((part) => String(part).padStart(2, "0"))].join("-");
}

export function parseDate(text) {
  const match = /^([0-9]{4})-([0-9]{2})-([0-9]{2})$/.exec(text);
  const [year, month, date] = match ? match.slice(1).map(Number) : [0, 0, 0];
  if (!match || year < 1 || month < 1 || month > 12 || date < 1 || date > monthDays(year, month)) {
    throw new Refusal(`'${text.slice(0, 20)}' is not a date: write YYYY-MM-DD`);
  }
  return dayOf(year, month, date);
}

function monthDays(year, month) {
  return month === 12 ? 31 : dayOf(year, month + 1, 1) - dayOf(year, month, 1);
}

/** The same day of another month, or the last one of a month that is too short for it. */
export function addMonths(day, months) {
  const [year, month, date] = civil(day);
  const index = year * 12 + month - 1 + months;
  const [toYear, toMonth] = [floorDiv(index, 12), index - floorDiv(index, 12) * 12 + 1];
  return checkDay(dayOf(toYear, toMonth, Math.min(date, monthDays(toYear, toMonth))));
}

export function checkDay(day) {
  if (day < FIRST_DAY || day > LAST_DAY) throw new Refusal("a date past the calendar's end");
  return day;
}

/** `{ count, unit }` of `P1D`, `P1W` or `P1M`. */
export function parsePeriodLength(text) {
  const match = /^P([0-9]{1,3})([DWM])$/.exec(text);
  if (!match || Number(match[1]) === 0) {
    throw new Refusal(`'${text.slice(0, 20)}' is not a period; write P1D, P1W or P1M`);
  }
  return { count: Number(match[1]), unit: match[2] };
}

export const lengthText = ({ count, unit }) => `P${count}${unit}`;
export const lengthDays = ({ count, unit }) => count * { D: 1, W: 7 }[unit];
export const sameLength = (left, right) => left.count === right.count && left.unit === right.unit;

/** Seconds of `PT1H`, `PT5M` or `PT30S`. */
export function parseWindowSeconds(text) {
  const match = /^PT([0-9]{1,4})([SMH])$/.exec(text);
  if (!match || Number(match[1]) === 0) {
    throw new Refusal(`'${text.slice(0, 20)}' is not a window length; write PT1H, PT5M or PT30S`);
  }
  return Number(match[1]) * { S: 1, M: 60, H: 3600 }[match[2]];
}

/** Seconds after midnight of `08:00`. */
export function parseTimeOfDay(text) {
  const match = /^([01][0-9]|2[0-3]):([0-5][0-9])$/.exec(text);
  if (!match) throw new Refusal(`'${text.slice(0, 20)}' is not a time of day; write HH:MM, such as 08:00`);
  return Number(match[1]) * 3600 + Number(match[2]) * 60;
}
