// From the bytes of files to a report: what the page shows, and what a test or a curious reader calls from the console.

import { BadInput } from "./refusal.js";
import { exitCode, readBundle, readOpening, readTrust, verifyBundle } from "./verify.js";

/**
 * `{ exitCode, lines, notEstablished, bundle }` of the bytes of a bundle and, where they are given, of a trust file and
 * an opening. Exit code 2 with `problem` is for a file that cannot be used. `said(line)` is called as each line is there.
 */
export async function checkFiles({ bundle, trust = null, opening = null, acceptDev = false, said }) {
  let read;
  try {
    read = {
      bundle: readBundle(bundle),
      trust: trust === null ? null : readTrust(trust),
      opening: opening === null ? null : readOpening(opening),
    };
  } catch (error) {
    const problem = error instanceof BadInput ? error.message : `it cannot be read (${error?.message ?? error})`;
    return { exitCode: 2, problem, lines: [], notEstablished: [] };
  }
  const report = await verifyBundle(read.bundle, read.trust, read.opening, said);
  return { ...report, acceptDev, exitCode: exitCode(report, acceptDev), bundle: read.bundle };
}

/** The closing sentence of a report, in the words of `sla-ledger verify`. */
export function conclusion({ exitCode: code, lines, acceptDev }) {
  const failed = lines.filter((line) => line.outcome === "FAIL").map((line) => line.check);
  if (code === 1) return `does not hold: ${failed.join(", ")}`;
  if (code === 0) return "consistent offline, against your pins";
  const open = lines.filter((line) => line.notEvaluated).map((line) => line.check);
  if (open.length) return `consistent offline as far as it was checked; not checked by this page: ${open.join(", ")}`;
  const assumed = lines.filter((line) => line.outcome === "ASSUMED").map((line) => line.check);
  return `consistent offline, but resting on ${assumed.filter((check) => !(acceptDev && check === "dev key")).join(", ")}`;
}
