// A bundle under examination: what it says, and what follows from its signed agreement. Nothing here trusts the bundle:
// what can be derived is derived, and the checks compare it with what the bundle says.

import { readAgreement, windowsOf } from "./agreement.js";
import { reasonsWithoutProof } from "./attestability.js";
import { hex } from "./bytes.js";
import { dateText, parseDate, parsePeriodLength, sameLength } from "./dates.js";
import {
  BLOCK_WINDOWS,
  contextOf,
  readIncidentSignals,
  readSignals,
  sealKeyOf,
  signalList,
  slaIdOf,
} from "./formats.js";
import { readKey } from "./groth16.js";
import { same } from "./json.js";
import { openCheckpoint, parseVkey } from "./note.js";
import { mayLeaveUndecided, unitOf } from "./objectives.js";
import { periodName, shareOfTime } from "./periods.js";
import { Refusal, fail, require } from "./refusal.js";
import { termsHashOf } from "./terms.js";

const oneProof = ({ circuitId }, signals, { proof }) => ({ circuitId, signals: signalList(signals), proof });

const REQUESTS = "requests";

/** Refuse two values that have not the same canonical bytes. */
export function requireSame(found, expected, message) {
  require(same(found, expected), message);
}

/** What a result counts is what its method counts; one without a unit counts requests. */
function requireUnit({ id, unit }, objective) {
  const counted = unitOf(objective);
  require(unit === (counted === REQUESTS ? undefined : counted), `${id} counts ${counted}, not ${unit ?? REQUESTS}`);
}

/** Each derived value is worked out when first asked for; any of them may throw. */
export class Case {
  constructor(bundle) {
    this.bundle = bundle;
    this.issued = bundle.statement.payload;
    this.known = new Map();
  }

  once(name, derive) {
    if (!this.known.has(name)) this.known.set(name, derive());
    return this.known.get(name);
  }

  /** The terms, in force until what ended them. */
  get agreement() {
    return this.once("agreement", () => {
      const endedBy = this.bundle.ended_by;
      const terms = readAgreement(this.bundle.agreement);
      if (endedBy === undefined) return terms;
      const day = endedBy.kind === "Termination" ? this.notice.effective : readAgreement(endedBy).from;
      require(terms.from < day && day < terms.until, `the terms are not in force on ${dateText(day)}`);
      return readAgreement(this.bundle.agreement, day);
    });
  }

  /** The notice that ended the terms; null where none did. */
  get notice() {
    const endedBy = this.bundle.ended_by;
    if (endedBy?.kind !== "Termination") return null;
    if (!Object.keys(endedBy.signatures).length) {
      throw fail("signatures", "nobody signed the notice; issuer, customer or both must");
    }
    return { document: endedBy, effective: parseDate(endedBy.effective) };
  }

  get slaId() {
    return this.once("slaId", () => slaIdOf(this.agreement));
  }

  get slaText() {
    return "0x" + hex(this.slaId);
  }

  get period() {
    return this.once("period", () => {
      const [first, length, ...rest] = this.issued.period.split("/");
      if (rest.length) throw new Refusal("not a period");
      const found = this.agreement.periods.starting(parseDate(first));
      const asked = parsePeriodLength(length);
      if (!sameLength(asked, found.length)) {
        throw fail(
          "period",
          `${this.issued.period} asks for ${length}, but this agreement's period from ${dateText(found.first)} is ` +
            periodName(found),
        );
      }
      return found;
    });
  }

  get firstDay() {
    return dateText(this.period.first);
  }

  /** The base of this period, which of a part is its share. */
  get base() {
    return this.once("base", () => {
      const { base } = this.agreement.compensation;
      const { whole, interval } = this.period;
      return whole ? shareOfTime(base, whole, interval) : base;
    });
  }

  get windows() {
    return this.once("windows", () => windowsOf(this.agreement, this.period));
  }

  /** Why the statement carries no proof; empty where it must carry one. */
  get reasons() {
    return this.once("reasons", () => reasonsWithoutProof(this.agreement, this.results));
  }

  get withheld() {
    const { observed, windows, excluded } = this.issued;
    return BigInt(observed) * 10_000n < BigInt(windows - excluded) * this.agreement.floorBps;
  }

  get sealKey() {
    return this.once("sealKey", () => {
      const { docSha256, windowSeconds } = this.agreement;
      return sealKeyOf(this.slaId, docSha256, this.period.interval, windowSeconds);
    });
  }

  get termsHash() {
    return this.once("termsHash", () => {
      // The last reasons are of counts; those of the terms alone forbid this hash.
      const reasons = reasonsWithoutProof(this.agreement);
      require(!reasons.length, `this agreement cannot be attested: ${reasons.join("; ")}`);
      return termsHashOf(this.agreement);
    });
  }

  /** The payloads of the earlier versions of the statement, oldest first. */
  get earlier() {
    const version = this.issued.statement_version;
    const events = this.bundle.previous ?? [];
    require(events.length === version - 1, `version ${version} comes with the ${version - 1} before it`);
    return events.map((event) => event.payload);
  }

  /** The payloads of the earlier versions that carry a proof, oldest first: a proof counts the others not. */
  get provedBefore() {
    return this.earlier.filter((issued) => issued.attestable && issued.state === "settled");
  }

  get proofsBefore() {
    return this.provedBefore.length;
  }

  /** The ctx of the version that the proof replaces, 0 for the first. */
  get previousCtx() {
    return this.once("previousCtx", () => {
      let previous = 0n;
      for (let version = 1; version <= this.proofsBefore; version += 1) previous = this.ctxOf(version, previous);
      return previous;
    });
  }

  get ctx() {
    return this.once("ctx", () => this.ctxOf(this.proofsBefore + 1, this.previousCtx));
  }

  ctxOf(statementVersion, previous) {
    const { context } = this.bundle;
    require(context !== null, "the bundle names no chain and registry");
    return contextOf({
      chainId: BigInt(context.chain_id),
      registry: context.registry,
      slaId: this.slaId,
      interval: this.period.interval,
      termsVersion: this.issued.terms_version,
      statementVersion,
      previous,
    });
  }

  get proof() {
    require(this.bundle.proof !== null, "the bundle has no proof");
    return this.bundle.proof;
  }

  /** What the circuit over as many blocks as were sealed is called. */
  get circuitName() {
    return `compliance_${BLOCK_WINDOWS * this.bundle.seals.length}x4`;
  }

  get signals() {
    return this.once("signals", () => readSignals(this.proof.signals));
  }

  /** The second proof, of a credit that incidents add to. */
  get incidentProof() {
    require("incident_proof" in this.bundle, "the bundle has no proof of its incident credit");
    return this.bundle.incident_proof;
  }

  get incidentSignals() {
    return this.once("incidentSignals", () => readIncidentSignals(this.incidentProof.signals));
  }

  get incidentKey() {
    return this.once("incidentKey", () => readKey(this.incidentProof.verification_key));
  }

  /** The proof, and behind it the second one where the terms ask for one, as the registry takes them. */
  get proofs() {
    return this.once("proofs", () => {
      const first = oneProof(this.key, this.signals, this.proof);
      if (!this.agreement.compensation.impact) return [first];
      return [first, oneProof(this.incidentKey, this.incidentSignals, this.incidentProof)];
    });
  }

  get key() {
    return this.once("key", () => readKey(this.proof.verification_key));
  }

  /** The signed checkpoint that the paths lead to. */
  get checkpoint() {
    return this.once("checkpoint", () => openCheckpoint(this.bundle.log.checkpoint, parseVkey(this.bundle.log.vkey)));
  }

  /** The objectives as the statement gives them, in the agreement's order. */
  get results() {
    return this.once("results", () => {
      const { objectives } = this.agreement;
      const listed = this.issued.objectives;
      require(listed.length === objectives.length &&
        listed.every(
          (item, at) => item.id === objectives[at].id,
        ), "the statement's objectives are not the agreement's, in its order");
      return listed.map((item, at) => {
        require(item.target === objectives[at].target, `the target of ${item.id} is not the agreement's`);
        requireUnit(item, objectives[at]);
        const decided = !item.undecided || mayLeaveUndecided(objectives, objectives[at]);
        require(decided, `every count of ${item.id} is good or bad; its source leaves nothing undecided`);
        return {
          objective: objectives[at],
          good: BigInt(item.good),
          valid: BigInt(item.valid),
          state: item.state,
          undecided: BigInt(item.undecided ?? 0),
        };
      });
    });
  }
}
