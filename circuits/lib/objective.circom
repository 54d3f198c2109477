// One objective of a period: its verdict and its tier, both from the same sums.
pragma circom 2.1.6;

include "comparators.circom";
include "checks.circom";

// Targets and thresholds are parts per billion of good over total. Sums stay below 2^38 good and
// 2^39 total (1023 windows of 28 bits), so both sides of a comparison stay below 2^69 and
// LessThan(72) is exact. 64 bits would be too narrow from 175 windows.
//
// state: 0 unused, 1 no_data, 2 met, 3 breached.
// bps: basis points of the last tier that applies, 0 if none does.
template Objective(TIERS) {
    signal input used;
    signal input target;
    signal input threshold[TIERS];
    signal input tierBps[TIERS];
    signal input good;
    signal input bad;

    signal output state;
    signal output bps;

    Boolean()(used);
    AtMost(30, 1000000000)(target);
    Excludes()(1 - used, target);
    Excludes()(1 - used, threshold[0]);
    Excludes()(1 - used, good + bad);

    signal unusedTier[TIERS];
    signal falls[TIERS];
    for (var k = 0; k < TIERS; k++) {
        Range(30)(threshold[k]);
        AtMost(14, 10000)(tierBps[k]);
        unusedTier[k] <== IsZero()(threshold[k]);
        Excludes()(unusedTier[k], tierBps[k]);
        if (k == 0) {
            AtMost(30, 1000000000)(threshold[k]);
            falls[k] <== 1;
        } else {
            // Strictly falling until the first unused tier, all unused after it.
            falls[k] <== LessThan(30)([threshold[k], threshold[k - 1]]);
            Excludes()(1 - falls[k], 1 - unusedTier[k]);
        }
    }

    signal scaledGood <== good * 1000000000;
    signal total <== good + bad;

    signal needed <== total * target;
    signal short <== LessThan(72)([scaledGood, needed]);
    signal noData <== IsZero()(total);
    // No total means 1; an unused objective has no total (checked above), which takes it to 0.
    state <== used + (1 - noData) * (1 + short);

    signal bar[TIERS];
    signal applies[TIERS];
    signal best[TIERS + 1];
    best[0] <== 0;
    for (var k = 0; k < TIERS; k++) {
        bar[k] <== total * threshold[k];
        applies[k] <== LessThan(72)([scaledGood, bar[k]]);
        best[k + 1] <== best[k] + applies[k] * (tierBps[k] - best[k]);
    }
    bps <== best[TIERS];
}

// The percentages of several objectives as one: the largest, or their sum up to 10000 bps.
template Combine(OBJECTIVES) {
    signal input sumCapped;
    signal input bps[OBJECTIVES];
    signal output out;

    signal greater[OBJECTIVES];
    signal largest[OBJECTIVES + 1];
    var sum = 0;
    largest[0] <== 0;
    for (var m = 0; m < OBJECTIVES; m++) {
        greater[m] <== LessThan(14)([largest[m], bps[m]]);
        largest[m + 1] <== largest[m] + greater[m] * (bps[m] - largest[m]);
        sum += bps[m];
    }
    signal total <== sum;
    signal over <== LessThan(16)([10000, total]);
    signal capped <== total + over * (10000 - total);
    out <== largest[OBJECTIVES] + sumCapped * (capped - largest[OBJECTIVES]);
}
