// Checks about who signed what: the file, the agreement and what ended it, the telemetry root.

import { readAgreement, readPoint } from "./agreement.js";
import { telemetrySignatureHolds } from "./babyjub.js";
import { concat, equal, fromHex, utf8 } from "./bytes.js";
import { hex } from "./bytes.js";
import { dateText } from "./dates.js";
import { slaIdOf } from "./formats.js";
import { signatureHolds } from "./hashes.js";
import { canonicalBytes, without } from "./json.js";
import { require } from "./refusal.js";

export function issuerSignature({ bundle }) {
  const key = fromHex(bundle.agreement.parties.issuer.ed25519_public_key);
  const message = concat(utf8("sla-ledger/bundle/v1\n"), canonicalBytes(without(bundle, "issuer_signature")));
  require(signatureHolds(key, message, fromHex(bundle.issuer_signature)), "the issuer did not sign this file");
  return "the issuer signed every byte of this file";
}

export function agreement(found) {
  const { issued, agreement: terms } = found;
  requireSignatures(terms);
  require(issued.sla_id === found.slaText, "the statement is for another agreement (sla_id)");
  require(issued.doc_sha256 === hex(terms.docSha256), "the statement is for other terms (doc_sha256)");
  const service = terms.document.service.name;
  return `both parties signed it for ${service}; slaId ${found.slaText.slice(0, 18)}...${ending(found)}`;
}

export function collectorSignature({ bundle, agreement: terms }) {
  const sealed = bundle.telemetry;
  const holds = telemetrySignatureHolds(terms.collectorKey, BigInt(sealed.root), readSignature(sealed.signature));
  require(holds, "the collector did not sign this telemetry root");
  return "the agreement's collector signed the telemetry root";
}

/** Whether the terms name a probe, or somebody signed as one. */
export function concernsProbe({ bundle }) {
  return bundle.telemetry !== null && ("probe" in bundle.agreement || "probe_signature" in bundle.telemetry);
}

/** Whether a signature that need not be there is not there. */
export function probeDidNotSign({ bundle }) {
  return bundle.agreement.probe?.signature === "shown" && !("probe_signature" in bundle.telemetry);
}

export function probeSignature({ bundle, agreement: { probe } }) {
  const signed = bundle.telemetry.probe_signature;
  if (probe === null) {
    require(signed === undefined, "somebody signed as a probe, and the terms name none");
    return "the terms name no probe";
  }
  if (signed === undefined) {
    require(!probe.required, `the terms require the signature of the probe ${probe.name}, and it is missing`);
    return `the probe ${probe.name} did not sign, and the terms do not require it`;
  }
  const holds = telemetrySignatureHolds(probe.key, BigInt(bundle.telemetry.root), readSignature(signed));
  require(holds, `the probe ${probe.name} did not sign this telemetry root`);
  return `the customer's probe ${probe.name} signed the telemetry root, too`;
}

const readSignature = ({ r8, s }) => ({ r8: readPoint(r8), s: BigInt(s) });

function requireSignatures(terms) {
  for (const name of ["issuer", "customer"]) {
    const signature = fromHex(terms.document.signatures[name]);
    require(signatureHolds(
      terms[name].key,
      terms.signingMessage,
      signature,
    ), `signatures.${name} does not hold over this document`);
  }
}

/** What ended the terms, if anything did: signed like themselves, and about the same agreement. */
function ending(found) {
  const { agreement: terms, notice, bundle } = found;
  if (bundle.ended_by === undefined) return "";
  if (notice) {
    require(notice.document.sla_id === found.slaText, "the notice ends another agreement");
    const signed = requireNoticeSignatures(notice.document, terms);
    return `; ended on ${dateText(notice.effective)} by notice of ${signed.join(" and ")}`;
  }
  const following = readAgreement(bundle.ended_by);
  require(equal(slaIdOf(following), found.slaId), "the terms that follow are of another agreement");
  for (const name of ["issuer", "customer"]) {
    require(equal(terms[name].key, following[name].key), `the terms that follow name another key of the ${name}`);
  }
  requireSignatures(following);
  return `; other terms follow from ${dateText(following.from)}`;
}

function requireNoticeSignatures(document, terms) {
  const message = concat(utf8("sla-ledger/termination/v1\n"), canonicalBytes(without(document, "signatures")));
  const signed = ["issuer", "customer"].filter((name) => name in document.signatures);
  for (const name of signed) {
    const holds = signatureHolds(terms[name].key, message, fromHex(document.signatures[name]));
    require(holds, `signatures.${name} does not hold over this notice`);
  }
  return signed;
}
