// The credit of a period whose terms pay for incidents beside the tiers: combined, capped, rounded once.
// The statement, its inputs and its public signals are described in docs/attestation-format.md.
pragma circom 2.1.6;

include "poseidon.circom";
include "comparators.circom";
include "lib/checks.circom";
include "lib/hash.circom";
include "lib/incidents.circom";
include "generated/tags.circom";

// Arithmetic over the incidents that the log names (impact-v1): duration times requests per second
// is the number of valid requests, so an incident costs valid * coefficient * price. That its counts
// are those sealed is shown by an opening, not here.
//
// Amounts are in 10^-18 minor units, the least unit in which coefficient and price, billionths both,
// and the tiers' 1/10000 are whole: nothing is lost before the one rounding. Valid requests stay
// below 2^45 (64 slots of two counts of 38 bits), so amounts stay below 2^173 + 2^125 and
// LessThan(176) is exact.
template IncidentCredit(SLOTS) {
    // Public signals, in this order: outputs first, then the public inputs as declared here.
    signal output summary;
    signal output credit;
    signal input ctx;
    signal input tierCredit;
    signal input termsHash;
    signal input incidentRoot;

    // The incidents and the rule.
    signal input sealKey;
    signal input active[SLOTS];
    signal input first[SLOTS];
    signal input windows[SLOTS];
    signal input good[SLOTS];
    signal input bad[SLOTS];
    signal input coefficient;
    signal input price;
    signal input sumRules;

    // Signed terms: what is not used here enters the hash as it is.
    signal input docHi;
    signal input docLo;
    signal input collector[2];
    signal input sumCapped;
    signal input halfUp;
    signal input halfEven;
    signal input hidden;
    signal input cap;
    signal input minimum;
    signal input otherTerms[41];

    // Money.
    signal input tierAmount;
    signal input tierSalt;
    signal input totalSalt;
    signal input quotient;
    signal input remainder;

    // --- incidents and their hash --------------------------------------------------------------
    component incidents = Incidents(SLOTS);
    incidents.active <== active;
    incidents.first <== first;
    incidents.windows <== windows;
    incidents.good <== good;
    incidents.bad <== bad;
    Range(64)(coefficient);
    Range(64)(price);
    Boolean()(sumRules);
    signal preimage[SLOTS + 5];
    preimage[0] <== sealKey;
    preimage[1] <== coefficient;
    preimage[2] <== price;
    preimage[3] <== sumRules;
    preimage[4] <== incidents.count;
    for (var i = 0; i < SLOTS; i++) { preimage[i + 5] <== incidents.word[i]; }
    signal root <== Sponge(SLOTS + 5, TAG_INCIDENTS())(preimage);
    Same()(incidentRoot, root);

    // --- terms: bit 4 of the flags is set, or the tier amount would not be exact -----------------
    Boolean()(sumCapped);
    Boolean()(halfUp);
    Boolean()(halfEven);
    Excludes()(halfUp, halfEven);
    Boolean()(hidden);
    Range(64)(cap);
    Range(64)(minimum);
    signal termsPreimage[48];
    termsPreimage[0] <== docHi;
    termsPreimage[1] <== docLo;
    termsPreimage[2] <== collector[0];
    termsPreimage[3] <== collector[1];
    termsPreimage[4] <== sumCapped + 2 * halfUp + 4 * halfEven + 8 * hidden + 16;
    termsPreimage[5] <== cap;
    termsPreimage[6] <== minimum;
    for (var i = 0; i < 41; i++) { termsPreimage[i + 7] <== otherTerms[i]; }
    signal terms <== Sponge(48, TAG_TERMS())(termsPreimage);
    Same()(termsHash, terms);

    // --- the tiers' amount, as the compliance proof of the same ctx shows it ---------------------
    Range(78)(tierAmount);
    signal tierCommitment <== Poseidon(4)([TAG_CREDIT(), ctx, tierAmount, tierSalt]);
    signal shownTier <== tierAmount + hidden * (tierCommitment - tierAmount);
    Same()(tierCredit, shownTier);

    // --- combine, cap, minimum, one rounding -----------------------------------------------------
    signal priced <== coefficient * price;
    signal impact <== incidents.valid * priced;
    signal tiers <== tierAmount * 100000000000000;
    signal tiersLess <== LessThan(176)([tiers, impact]);
    signal best <== tiers + tiersLess * (impact - tiers);
    signal combined <== best + sumRules * (tiers + impact - best);
    signal overCap <== LessThan(176)([cap * 1000000000000000000, combined]);
    signal amount <== combined + overCap * (cap * 1000000000000000000 - combined);
    signal payable <== LessThan(176)([minimum * 1000000000000000000, amount]);

    AtMost(60, 999999999999999999)(remainder);
    Same()(amount, quotient * 1000000000000000000 + remainder);
    // This is also the range of quotient. Rounding never exceeds the cap, so the credit has 64 bits.
    signal quotientBits[64] <== Num2Bits(64)(quotient);
    signal belowHalf <== LessThan(60)([remainder, 500000000000000000]);
    signal isHalf <== IsEqual()([remainder, 500000000000000000]);
    signal upIfHalfUp <== halfUp * (1 - belowHalf);
    signal tieIsOdd <== isHalf * quotientBits[0];
    signal upIfHalfEven <== halfEven * (1 - belowHalf - isHalf + tieIsOdd);
    signal rounded <== payable * (quotient + upIfHalfUp + upIfHalfEven);

    signal commitment <== Poseidon(4)([TAG_TOTAL(), ctx, rounded, totalSalt]);
    credit <== rounded + hidden * (commitment - rounded);
    summary <== incidents.count + incidents.windowCount * (1 << 8);
}
