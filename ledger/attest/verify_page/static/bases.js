// What the percentages of credits are of: the base that is agreed on, or charges that finance recorded.

import { chargedBase, recordedCharges } from "./charges.js";
import { Fraction } from "./money.js";

/** The base of a period's credit. `agreed` is its amount where it is agreed on; `charges` are as a trace shows them. */
export function basesOf(found) {
  const { agreement } = found;
  if (agreement.compensation.charged) return chargedBases(agreement, recordedCharges(found));
  const whole = new Fraction(found.base);
  return { agreed: found.base, whole, charges: null, of: () => whole, ofScope: () => whole, shown: () => ({}) };
}

function chargedBases({ objectives, document }, charges) {
  const baseOf = (...scopes) => chargedBase(charges, document.service.name, scopes);
  return {
    agreed: null,
    // A charge in the scope of several objectives counts once.
    whole: baseOf(...objectives.map((each) => each.scope)).amount,
    charges: { period: charges.period, lines: charges.documents },
    of: ({ scope }) => baseOf(scope).amount,
    ofScope: (scope) => baseOf(scope).amount,
    shown({ scope }) {
      const { lines, amount } = baseOf(scope);
      return { base: { lines, amount: amount.document() } };
    },
  };
}
