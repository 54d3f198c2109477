// The objectives of an agreement: what each promises, and the rules that its members are held to.

import { parseWindowSeconds } from "./dates.js";
import { PARTS_PER_BILLION, percentPpb, scaledInteger } from "./money.js";
import { convert, fail } from "./refusal.js";
import { readSource } from "./sources.js";
import { tables } from "./tables.js";

const SCORE_UNITS = 1000n;
const WITH_WINDOW = ["total_ratio", "exact_quantile", "graded_score-v1"];
const LATENCIES = ["first_token_latency", "response_latency"];

/** The objectives of a shape-checked document whose windows last `baseSeconds`; throws naming the field. */
export function readObjectives(documents, baseSeconds) {
  const found = [];
  documents.forEach((item, index) => {
    const at = `objectives[${index}]`;
    if (found.some((each) => each.id === item.id)) throw fail(`${at}.id`, `'${item.id}' names two objectives`);
    found.push(new Reader(at, item, baseSeconds).objective());
  });
  found.forEach((each, index) => checkCompanion(`objectives[${index}].slice.only_with`, each, found));
  if (found.every((each) => each.source.kind === "own_violations")) {
    throw fail("objectives", "no objective but of own_violations: there is nothing that could be violated");
  }
  return found;
}

/** What the counts of an objective's result are. */
export const unitOf = (objective) =>
  tables.methods[objective.method].unit ?? objective.source.unit ?? tables.indicators[objective.indicator].unit;

/** Whether data can leave counts open: of histograms and samples, and of slices that are held against such counts. */
export function mayLeaveUndecided(objectives, { id, slices }) {
  const kinds = objectives.filter((each) => [id, slices?.onlyWith].includes(each.id)).map((each) => each.source.kind);
  return kinds.includes("histograms") || kinds.includes("samples");
}

/** What an objective is about, as one text: equal scopes are one scope. */
export const scopeKey = ({ region, model }) => JSON.stringify([region ?? null, model ?? null]);

class Reader {
  constructor(at, item, baseSeconds) {
    Object.assign(this, { at, item, baseSeconds, indicator: tables.indicators[item.indicator] });
  }

  objective() {
    const { item } = this;
    const targetPpb = this.convert("target", percentPpb);
    this.checkThreshold();
    if ("quantile" in item && this.convert("quantile", (text) => scaledInteger(text, 9)) !== targetPpb) {
      throw fail(
        `${this.at}.quantile`,
        `${item.quantile} and the target ${item.target} % must say the same share of requests`,
      );
    }
    const repeatSeconds = this.convert("repeat_window", parseWindowSeconds);
    if (repeatSeconds !== null && !["availability", "error_rate"].includes(item.indicator)) {
      throw fail(`${this.at}.repeat_window`, `repeats are told by failed requests, not by ${item.indicator}`);
    }
    const minimumValid = "error_rate" in item ? 0n : BigInt(item.minimum_valid ?? 0);
    this.checkNames();
    this.checkWhere();
    this.checkMeasure();
    this.checkGrades();
    return {
      id: item.id,
      method: item.method,
      indicator: item.indicator,
      target: item.target,
      targetPpb,
      minimumValid: this.scored ? minimumValid * SCORE_UNITS : minimumValid,
      wilson: this.wilson(),
      windowSeconds: this.windowSeconds(),
      repeatSeconds,
      down: this.down(),
      slices: this.slices(),
      scope: { region: item.scope?.region ?? null, model: item.scope?.model ?? null },
      source: readSource(this.at, item, this.baseSeconds),
    };
  }

  /** Whether each request or sample counts thousandths. */
  get scored() {
    return "grades" in this.item || "score_of" in (this.item.measure ?? {});
  }

  convert(key, how, item = this.item, at = this.at) {
    return key in item ? convert(`${at}.${key}`, item[key], how) : null;
  }

  seconds(key, item = this.item, at = this.at) {
    const seconds = this.convert(key, parseWindowSeconds, item, at);
    if (seconds !== null && seconds % this.baseSeconds) {
      throw fail(
        `${at}.${key}`,
        `${seconds} s are no whole number of the agreement's windows of ${this.baseSeconds} s`,
      );
    }
    return seconds;
  }

  windowSeconds() {
    const { item } = this;
    if ("window" in item && !WITH_WINDOW.includes(item.method)) {
      throw fail(
        `${this.at}.window`,
        `${item.method} breaks its promise in intervals, slices or windows of its own, so ${item.window} has no effect; ` +
          "leave it out",
      );
    }
    return this.seconds("window");
  }

  checkThreshold() {
    const threshold = this.convert("threshold_ms", (text) => scaledInteger(text, 6));
    const needed = LATENCIES.includes(this.item.indicator) && !("grades" in this.item);
    if (needed !== (threshold !== null)) {
      throw fail(
        `${this.at}.threshold_ms`,
        needed ? "is missing: a latency is good at or under it" : `${this.item.indicator} is no latency`,
      );
    }
    if (threshold === 0n) throw fail(`${this.at}.threshold_ms`, "must be above 0");
  }

  wilson() {
    if (!("confidence" in this.item)) return false;
    if (!["total_ratio", "exact_quantile"].includes(this.item.method) || this.scored) {
      throw fail(
        `${this.at}.confidence`,
        `wilson-95 is for a share of what is counted one by one, and ${this.item.method} gives none here`,
      );
    }
    return true;
  }

  /** Evaluator, tokenizer and resource: whose samples count. */
  checkNames() {
    const { item, at } = this;
    for (const key of ["evaluator", "tokenizer", "resource"]) {
      const hasOne = this.indicator.sampled || (key === "resource" && item.source === "outages");
      if (key in item && !hasOne) {
        throw fail(`${at}.${key}`, `only samples have one, and ${item.indicator} comes from requests`);
      }
    }
    const tokens = this.indicator.namedBy === "tokenizer";
    if (tokens !== "tokenizer" in item) {
      throw fail(
        `${at}.tokenizer`,
        tokens ? `is missing: ${item.indicator} counts tokens` : `${item.indicator} counts no tokens`,
      );
    }
    if (this.indicator.namedBy !== "evaluator") return;
    if (!/^[^ \t\n\r\f\v](?:.*[^ \t\n\r\f\v])? [^ \t\n\r\f\v]*[0-9][^ \t\n\r\f\v]*$/.test(item.evaluator ?? "")) {
      throw fail(`${at}.evaluator`, `${item.indicator} is judged; write name and version, factbench 2.1`);
    }
    if (!("minimum_valid" in (item.slice ?? item))) {
      throw fail(
        `${at}.${item.slice ? "slice." : ""}minimum_valid`,
        `is missing: ${item.indicator} is judged by samples`,
      );
    }
  }

  checkWhere() {
    const said = this.item.where;
    if (said === undefined) return;
    if (this.indicator.sampled) {
      throw fail(`${this.at}.where`, `only requests are selected, and ${this.item.indicator} comes from samples`);
    }
    if (!Object.keys(said).length) throw fail(`${this.at}.where`, "say input_tokens_at_most, model or region");
  }

  checkMeasure() {
    const said = this.item.measure;
    if (said === undefined) return;
    const at = `${this.at}.measure`;
    if (!this.indicator.sampled) {
      throw fail(at, `${this.item.indicator} is counted in the request log; only samples have values`);
    }
    const [kind, ...more] = Object.keys(said);
    if (kind === undefined || more.length) throw fail(at, "say one of at_least, at_most and score_of");
    const bound = convert(`${at}.${kind}`, said[kind], (text) => scaledInteger(text, 9));
    if (kind === "score_of" && bound === 0n) throw fail(`${at}.${kind}`, "the full score must be above 0");
  }

  checkGrades() {
    let before = null;
    (this.item.grades ?? []).forEach((said, index) => {
      const at = `${this.at}.grades[${index}]`;
      const bound = convert(`${at}.at_most_ms`, said.at_most_ms, (text) => scaledInteger(text, 6));
      const units = convert(`${at}.score`, said.score, (text) => scaledInteger(text, 3));
      if (units <= 0n || units > SCORE_UNITS) throw fail(`${at}.score`, `${said.score} is not above 0 and at most 1`);
      if (bound === 0n || (before && (bound <= before.bound || units >= before.units))) {
        throw fail(at, "latencies must be above 0 and rise, and scores must fall, from grade to grade");
      }
      before = { bound, units };
    });
  }

  /** When an interval is down; of it only what a verifier needs. */
  down() {
    const { item } = this;
    const scheduled = (item.denominator ?? "scheduled") === "scheduled";
    if (item.method === "deployment_minutes-v1") {
      return { intervalSeconds: this.baseSeconds, minimumRun: 1, scheduled };
    }
    if (item.method === "interval_mean-v1") {
      return { intervalSeconds: this.seconds("interval"), minimumRun: 1, scheduled: true };
    }
    if (!("error_rate" in item)) return null;
    const minutes = item.method === "downtime_minutes-v1";
    if (minutes && 60 % this.baseSeconds) {
      throw fail(
        `${this.at}.method`,
        `minutes are judged one by one, and the agreement's windows of ${this.baseSeconds} s do not fill one; agree on ` +
          "the window PT1M",
      );
    }
    const rate = this.convert("error_rate", (text) => scaledInteger(text, 7));
    const closed = item.boundary === "at_or_above";
    if (rate > PARTS_PER_BILLION || (rate === PARTS_PER_BILLION && !closed)) {
      throw fail(`${this.at}.error_rate`, `no error rate is ${item.boundary} ${item.error_rate} %`);
    }
    if (rate === 0n && closed) throw fail(`${this.at}.error_rate`, "at or above 0 % every interval would be down");
    return {
      intervalSeconds: minutes ? 60 : this.seconds("interval"),
      minimumRun: item.minimum_run ?? 1,
      scheduled,
    };
  }

  slices() {
    const said = this.item.slice;
    if (said === undefined) return null;
    const at = `${this.at}.slice`;
    const windowSeconds = this.seconds("window", said, at);
    const stepSeconds = this.seconds("step", said, at) || windowSeconds;
    if (windowSeconds % stepSeconds) {
      throw fail(
        `${at}.step`,
        `windows of ${windowSeconds} s cannot roll on by ${stepSeconds} s: one must fill the other`,
      );
    }
    this.convert("target", percentPpb, said, at);
    return { windowSeconds, stepSeconds, consecutive: said.consecutive ?? 1, onlyWith: said.only_with ?? null };
  }
}

function checkCompanion(at, { id, slices }, found) {
  if (!slices || slices.onlyWith === null) return;
  const other = found.find((each) => each.id === slices.onlyWith);
  if (!other?.slices || other.id === id) {
    throw fail(at, `'${slices.onlyWith}' must be another objective by slices (attainment-v1) of this agreement`);
  }
  if (other.slices.windowSeconds !== slices.windowSeconds || other.slices.stepSeconds !== slices.stepSeconds) {
    throw fail(at, `the slices of '${slices.onlyWith}' have another length or step`);
  }
}
