// What a statement says, in the few words that a reader looks for first.

import { formatMinorUnits } from "./money.js";

/** Pairs of a term and a text. */
export function statementFacts({ agreement, statement: { payload: issued } }) {
  const { issuer, customer } = agreement.parties;
  const results = issued.objectives.map((each) => `${each.id}: ${each.state}, ${each.good} of ${each.valid} good`);
  return [
    ["Service", agreement.service.name],
    ["Provider", issuer.name],
    ["Customer", customer.name],
    ["Period", `${issued.period} (${agreement.timezone})`],
    ["Statement", `${issued.statement_id}, version ${issued.statement_version}`],
    ["Observed", `${issued.observed} of ${issued.windows} windows, ${issued.excluded} excluded`],
    ["Results", results.join("; ")],
    ["Credit", creditText(issued)],
  ];
}

function creditText({ credit }) {
  if (credit === null) return "none: the statement is withheld";
  try {
    return `${formatMinorUnits(BigInt(credit.minor_units), credit.currency)} ${credit.currency}`;
  } catch {
    return `${credit.minor_units} minor units of ${credit.currency}`;
  }
}
