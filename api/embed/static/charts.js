// The two charts: windows as a strip of bars, and shares against a target. Each is an SVG for the eye and one control
// for the keyboard and for screen readers: arrow keys move from window to window and read it out.

import { el, svg } from "./dom.js";
import { fill } from "./messages.js";

const UNIT = 10;
const HEIGHT = 100;
// Heights differ as well as colours: the strip reads without colour, too.
const LEVELS = { missed: 100, failures: 80, undecided: 71, clean: 62, idle: 26, excluded: 26, no_data: 26 };

/** What a bar is for one objective: the verdict on its counts, else the state of its windows. */
export function kindOf(bar, objective) {
  if (bar.state !== "observed") return bar.state;
  return bar.cells[objective.id]?.verdict ?? "idle";
}

/** A kind in words. */
export function kindText(kind, texts) {
  return kind === "no_data" ? texts.missing : texts[kind];
}

/** How many were good, of how many of what, and how many of them may be either. */
export function counted({ good, valid, undecided = 0 }, unit, texts, format) {
  if (!valid) return texts.nothingCounted;
  const counts = { good: format.count(good), valid: format.count(valid), unit: unitText(unit, texts) };
  const said = fill(texts.counted, counts);
  return undecided ? said + fill(texts.undecidedOf, { n: format.count(undecided) }) : said;
}

/** What is counted, in the reader's language where that has a word for it. Early records name none: requests. */
export function unitText(unit, texts) {
  return texts.units[unit ?? "requests"] ?? unit;
}

/** One bar in words: when, how many, which share. */
export function describeBar(bar, objective, format, texts) {
  const kind = kindOf(bar, objective);
  const cell = bar.cells[objective.id];
  const parts = [format.times(bar.start, bar.end), kindText(kind, texts)];
  if (cell && cell.attainment_percent !== null) {
    const valid = cell.good + cell.bad + cell.undecided;
    parts.push(counted({ ...cell, valid }, objective.window_unit, texts, format), format.percent(cell.attainment_percent));
  }
  if (bar.excluded_requests) parts.push(fill(texts.excludedRequests, { n: format.count(bar.excluded_requests) }));
  return parts.join(" · ");
}

/** How many bars are of each kind, in words: the strip's short text equivalent. */
export function countKinds(bars, objective, format, texts) {
  const counts = new Map();
  for (const bar of bars) counts.set(kindOf(bar, objective), (counts.get(kindOf(bar, objective)) ?? 0) + 1);
  const known = Object.keys(LEVELS).filter((kind) => counts.has(kind));
  return known.map((kind) => ({ kind, text: `${kindText(kind, texts)}: ${format.count(counts.get(kind))}` }));
}

/** A strip with one bar for each window. */
export function strip(bars, objective, format, texts) {
  const marks = bars.map((bar, index) => {
    const kind = kindOf(bar, objective);
    const height = LEVELS[kind];
    return svg("rect", { class: `bar ${kind}`, x: index * UNIT + 1, y: HEIGHT - height, width: UNIT - 2, height });
  });
  return plot("strip", bars, objective, format, texts, marks);
}

/** The share of each window as a point, and the target as a line where it may be seen. */
export function shares(bars, objective, format, texts) {
  const percents = bars.map((bar) => bar.cells[objective.id]?.attainment_percent ?? null);
  const target = objective.target_percent;
  const floor = lowest([...percents, target]);
  // Places on the screen are the only thing here that is worked out in floats.
  const y = (percent) => ((100 - Number(percent)) / (100 - floor)) * (HEIGHT - 16) + 8;
  const marks = [];
  if (target !== null) {
    marks.push(svg("line", { class: "target", x1: 0, x2: bars.length * UNIT, y1: y(target), y2: y(target) }));
  }
  let run = [];
  const line = () => {
    if (run.length > 1) marks.push(svg("polyline", { class: "share", points: run.join(" ") }));
    run = [];
  };
  const points = [];
  percents.forEach((percent, index) => {
    if (percent === null) return line();
    const x = index * UNIT + UNIT / 2;
    run.push(`${x},${y(percent)}`);
    // A line without length has round ends that do not stretch with the chart, which a circle would.
    points.push(svg("line", { class: `point ${kindOf(bars[index], objective)}`, x1: x, x2: x, y1: y(percent), y2: y(percent) }));
    return undefined;
  });
  line();
  const chart = plot("shares", bars, objective, format, texts, [...marks, ...points]);
  const label = (text, percent, kind) => {
    const node = el("span", { class: `level ${kind}`, "aria-hidden": "true" }, text);
    node.style.top = `${y(percent)}%`;
    return node;
  };
  const canvas = chart.querySelector(".canvas");
  canvas.append(label(format.target("100"), 100, "top"), label(format.target(String(floor)), floor, "bottom"));
  if (target !== null) canvas.append(label(fill(texts.target, { target: format.target(target) }), target, "aim"));
  return chart;
}

/** Move a chart's cursor to a bar and read it out. */
export function point(plotNode, index, bars, objective, format, texts) {
  const at = Math.max(0, Math.min(bars.length - 1, index));
  const words = describeBar(bars[at], objective, format, texts);
  const control = plotNode.querySelector("[role=slider]");
  control.setAttribute("aria-valuenow", String(at + 1));
  control.setAttribute("aria-valuetext", words);
  const cursor = plotNode.querySelector(".cursor");
  cursor.hidden = false;
  cursor.style.left = `${((at + 0.5) / bars.length) * 100}%`;
  plotNode.querySelector(".readout").textContent = words;
}

function plot(kind, bars, objective, format, texts, marks) {
  const width = bars.length * UNIT;
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    marks,
  );
  const summary = countKinds(bars, objective, format, texts);
  const canvas = el(
    "div",
    {
      class: "canvas",
      role: "slider",
      tabindex: "0",
      "data-key": `${kind}-${objective.id}`,
      "data-chart": objective.id,
      "aria-label": `${title(objective, texts)}: ${summary.map(({ text }) => text).join(", ")}. ${texts.chartHelp}`,
      "aria-orientation": "horizontal",
      "aria-valuemin": "1",
      "aria-valuemax": String(bars.length),
      "aria-valuenow": "1",
      "aria-valuetext": describeBar(bars[0], objective, format, texts),
    },
    picture,
    el("span", { class: "cursor", hidden: true, "aria-hidden": "true" }),
  );
  return el(
    "div",
    { class: `plot ${kind}` },
    canvas,
    el(
      "div",
      { class: "axis", "aria-hidden": "true" },
      el("span", {}, format.moment(bars[0].start)),
      el("span", {}, format.moment(bars.at(-1).end)),
    ),
    el(
      "div",
      { class: "under" },
      el("ul", { class: "legend" }, summary.map((each) => el("li", { class: each.kind }, each.text))),
      el("p", { class: "readout", "aria-hidden": "true" }),
    ),
  );
}

/** What an objective is called: by its indicator, and by its own id where that is unknown. */
export function title(objective, texts) {
  return texts[objective.indicator] ?? objective.id;
}

/** A round lower end of the scale below every share shown. */
function lowest(percents) {
  const least = Math.min(...percents.filter((percent) => percent !== null).map(Number), 99);
  const step = least >= 90 ? 5 : 10;
  return Math.max(0, Math.floor((least - 0.001) / step) * step);
}
