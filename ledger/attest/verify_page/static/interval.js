// Half-open intervals [start, end) of instants in nanoseconds, and their unions.

import { Refusal } from "./refusal.js";

export function interval(startNs, endNs) {
  if (endNs <= startNs) throw new Refusal("an interval must end after it starts");
  return { startNs, endNs };
}

export const covers = (outer, inner) => outer.startNs <= inner.startNs && inner.endNs <= outer.endNs;

const later = (left, right) => (left > right ? left : right);
const earlier = (left, right) => (left < right ? left : right);

export function compare(left, right) {
  return Number(left > right) - Number(left < right);
}

/** The part that both have; null where they share no instant. */
export function clip(one, within) {
  const [startNs, endNs] = [later(one.startNs, within.startNs), earlier(one.endNs, within.endNs)];
  return startNs < endNs ? { startNs, endNs } : null;
}

/** The same instants as sorted, disjoint, non-touching intervals. */
export function union(intervals) {
  const sorted = [...intervals].sort((a, b) => compare(a.startNs, b.startNs) || compare(a.endNs, b.endNs));
  const merged = [];
  for (const each of sorted) {
    const last = merged.at(-1);
    if (last && each.startNs <= last.endNs) last.endNs = later(last.endNs, each.endNs);
    else merged.push({ ...each });
  }
  return merged;
}
