// What people see: files go in, lines come out. Texts of files become text nodes and nothing else.

import { checkFiles, conclusion } from "./check_files.js";
import { MAX_BUNDLE_BYTES, MAX_TRUST_BYTES } from "./verify.js";
import { statementFacts } from "./facts.js";

const KINDS = {
  bundle: { format: "sla-ledger/bundle/v1", most: MAX_BUNDLE_BYTES },
  trust: { format: "sla-ledger/trust/v1", most: MAX_TRUST_BYTES },
  opening: { format: "sla-ledger/opening/v1", most: MAX_BUNDLE_BYTES },
};
const HEADLINES = {
  0: "It holds, against your pins",
  1: "It does not hold",
  2: "This cannot be checked",
  3: "Consistent, but not settled",
};
const CLASSES = { PASS: "pass", FAIL: "fail", "NOT CHECKED": "open", ASSUMED: "open" };

/** Wire the page's controls. */
export function startPage(document) {
  new VerifyPage(document).start();
}

/** An element with attributes and children; a text is always a text node. */
function el(document, tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

class VerifyPage {
  constructor(document) {
    this.document = document;
    this.given = { bundle: null, trust: null, opening: null };
    // The check that is shown, and since when files were last forgotten: what is later overtakes what is earlier.
    this.run = 0;
    this.generation = 0;
  }

  at(id) {
    return this.document.getElementById(id);
  }

  start() {
    for (const kind of Object.keys(KINDS)) {
      const input = this.at(`file-${kind}`);
      input.addEventListener("change", () => this.take([...input.files], kind));
    }
    this.at("accept-dev").addEventListener("change", () => this.check());
    this.at("forget").addEventListener("click", () => this.forget());
    const zone = this.document.documentElement;
    for (const type of ["dragenter", "dragover"]) {
      zone.addEventListener(type, (event) => {
        event.preventDefault();
        zone.classList.add("dragging");
      });
    }
    for (const type of ["dragleave", "drop"]) zone.addEventListener(type, () => zone.classList.remove("dragging"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      this.take([...event.dataTransfer.files], null);
    });
  }

  /** Files that were chosen as a kind, or dropped, where each says what it is by its format. */
  async take(files, chosen) {
    const { generation } = this;
    const problems = [];
    const taken = {};
    for (const file of files.slice(0, 10)) {
      const read = await readFile(file, chosen);
      if (read.problem) problems.push(`${file.name}: ${read.problem}`);
      else taken[read.kind] = { name: file.name, bytes: read.bytes };
      if (read.kind && read.problem) taken[read.kind] = null;
    }
    if (generation !== this.generation) return;
    Object.assign(this.given, taken);
    for (const kind of Object.keys(KINDS)) {
      this.at(`name-${kind}`).textContent = this.given[kind]?.name ?? "none yet";
    }
    if (problems.length) this.showProblem(problems.join("; "));
    else await this.check();
  }

  forget() {
    this.run += 1;
    this.generation += 1;
    this.given = { bundle: null, trust: null, opening: null };
    for (const kind of Object.keys(KINDS)) {
      this.at(`file-${kind}`).value = "";
      this.at(`name-${kind}`).textContent = "none yet";
    }
    this.at("result").hidden = true;
    this.status("");
  }

  async check() {
    const run = (this.run += 1);
    const { bundle, trust, opening } = this.given;
    if (!bundle) {
      this.at("result").hidden = true;
      this.status(trust || opening ? "The bundle is still missing." : "");
      return;
    }
    this.clear();
    const said = async (line) => {
      if (run !== this.run) return;
      this.at("lines").append(this.row(line));
      this.status(`Checking: ${this.at("lines").children.length} lines so far ...`);
      await painted();
    };
    this.status("Checking ...");
    this.at("progress").hidden = false;
    await painted();
    const acceptDev = this.at("accept-dev").checked;
    const report = await checkFiles({
      bundle: bundle.bytes,
      trust: trust?.bytes ?? null,
      opening: opening?.bytes ?? null,
      acceptDev,
      said,
    });
    if (run !== this.run) return;
    if (report.exitCode === 2) this.showProblem(report.problem);
    else this.showReport(report);
  }

  clear() {
    for (const id of ["lines", "unknown", "facts"]) this.at(id).replaceChildren();
    this.at("headline").textContent = "Checking ...";
    this.at("conclusion").textContent = "";
    this.at("verdict").className = "verdict busy";
    for (const id of ["report", "unknown-part", "facts-part"]) this.at(id).hidden = false;
    this.at("unknown-part").hidden = true;
    this.at("facts-part").hidden = true;
    this.at("result").hidden = false;
  }

  showReport(report) {
    const forgeable =
      report.devKey && report.exitCode !== 1 ? "; under a development key, which its maker can forge" : "";
    this.conclude(report.exitCode, conclusion(report) + forgeable);
    for (const each of report.notEstablished) this.at("unknown").append(el(this.document, "li", {}, each));
    this.at("unknown-part").hidden = false;
    for (const [term, text] of statementFacts(report.bundle)) {
      this.at("facts").append(el(this.document, "dt", {}, term), el(this.document, "dd", {}, text));
    }
    this.at("facts-part").hidden = false;
    // What a file that does not hold says of itself is no fact.
    this.at("facts-title").textContent =
      report.exitCode === 1 ? "What the file claims (it does not hold)" : "What the file says";
  }

  showProblem(text) {
    this.clear();
    this.at("report").hidden = true;
    this.conclude(2, text);
  }

  conclude(code, text) {
    this.at("progress").hidden = true;
    this.at("verdict").className = `verdict code-${code}`;
    this.at("headline").textContent = HEADLINES[code];
    this.at("conclusion").textContent = text;
    // For who cannot see the headline; who can has read it.
    this.at("status").classList.add("spoken");
    this.at("status").textContent = `${HEADLINES[code]}: ${text}`;
  }

  status(text) {
    this.at("status").classList.remove("spoken");
    this.at("status").textContent = text;
    if (!text || text.endsWith("missing.")) this.at("progress").hidden = true;
  }

  row({ check, outcome, detail }) {
    return el(
      this.document,
      "tr",
      { class: CLASSES[outcome] },
      el(this.document, "td", {}, el(this.document, "span", { class: "outcome" }, outcome)),
      el(this.document, "th", { scope: "row" }, check),
      el(this.document, "td", { class: "detail" }, detail),
    );
  }
}

/** The bytes of a file with the kind that it has, or a problem. Nothing larger than a kind may be is read. */
async function readFile(file, chosen) {
  const most = chosen ? KINDS[chosen].most : MAX_BUNDLE_BYTES;
  if (file.size > most) return { kind: chosen, problem: `the file has ${file.size} bytes; at most ${most} are read` };
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    return { kind: chosen ?? kindOf(bytes), bytes };
  } catch (error) {
    return { kind: chosen, problem: `it cannot be read (${error?.message ?? error})` };
  }
}

/** What a dropped file calls itself; one that says nothing is taken for a bundle, whose reader says what is wrong. */
function kindOf(bytes) {
  const text = new TextDecoder().decode(bytes);
  const found = Object.entries(KINDS).find(([, { format }]) => new RegExp(`"format"\\s*:\\s*"${format}"`).test(text));
  return found ? found[0] : "bundle";
}

/** Let the browser paint what was said. */
const painted = () => new Promise((resolve) => setTimeout(resolve));
