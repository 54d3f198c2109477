// From basis points to a credit in minor units: cap, strict minimum, one rounding.
pragma circom 2.1.6;

include "comparators.circom";
include "checks.circom";

// Amounts before rounding are in 1/10000 minor units and stay below 2^78 (64 bits times 10000).
// quotient and remainder are the prover's division of that amount by 10000; the ranges make the
// pair unique. Rounding never exceeds fee or cap, so the credit has 64 bits.
//
// exact: the amount is an item of IncidentCredit, which combines, caps and rounds; what leaves here
// is fee * bps as it is, in 1/10000 minor units. No bit of it is lost before the one rounding.
template Credit() {
    signal input fee;
    signal input cap;
    signal input minimum;
    signal input bps;
    signal input halfUp;
    signal input halfEven;
    signal input exact;
    signal input quotient;
    signal input remainder;
    signal output out;

    Range(64)(fee);
    Range(64)(cap);
    Range(64)(minimum);
    AtMost(14, 9999)(remainder);
    Boolean()(halfUp);
    Boolean()(halfEven);
    // Rounding mode 3 does not exist.
    Excludes()(halfUp, halfEven);
    Boolean()(exact);

    signal uncapped <== fee * bps;
    signal overCap <== LessThan(78)([cap * 10000, uncapped]);
    signal amount <== uncapped + overCap * (cap * 10000 - uncapped);
    signal payable <== LessThan(78)([minimum * 10000, amount]);
    Same()(amount, quotient * 10000 + remainder);

    signal belowHalf <== LessThan(14)([remainder, 5000]);
    signal isHalf <== IsEqual()([remainder, 5000]);
    // This is also the range of quotient.
    signal quotientBits[64] <== Num2Bits(64)(quotient);
    signal upIfHalfUp <== halfUp * (1 - belowHalf);
    signal tieIsOdd <== isHalf * quotientBits[0];
    signal upIfHalfEven <== halfEven * (1 - belowHalf - isHalf + tieIsOdd);
    signal rounded <== payable * (quotient + upIfHalfUp + upIfHalfEven);
    out <== rounded + exact * (uncapped - rounded);
}
