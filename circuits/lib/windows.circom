// One sealed block of windows: its hash and its sums.
pragma circom 2.1.6;

include "comparators.circom";
include "checks.circom";
include "hash.circom";
include "../generated/tags.circom";

// Inputs per window: good and bad per objective (28 bits each), and the bits `observed` (its data
// is in), `excluded` (taken out of the period by an announced exclusion) and `active` (it belongs
// to the period: a prefix mask, because a period is seldom a whole number of blocks).
// `activeBefore` is the mask bit of the window before the first one.
template WindowBlock(INDEX, WINDOWS, OBJECTIVES) {
    signal input sealKey;
    signal input salt;
    signal input activeBefore;
    signal input good[WINDOWS][OBJECTIVES];
    signal input bad[WINDOWS][OBJECTIVES];
    signal input observed[WINDOWS];
    signal input excluded[WINDOWS];
    signal input active[WINDOWS];

    signal output hash;
    signal output goodSum[OBJECTIVES];
    signal output badSum[OBJECTIVES];
    signal output activeCount;
    signal output observedCount;
    signal output excludedCount;
    signal output idleCount;

    // The layout of a word has room for four objectives below bit 224.
    assert(OBJECTIVES <= 4);

    var goods[OBJECTIVES];
    var bads[OBJECTIVES];
    for (var m = 0; m < OBJECTIVES; m++) { goods[m] = 0; bads[m] = 0; }
    var actives = 0;
    var observeds = 0;
    var excludeds = 0;
    var empties = 0;

    signal counts[WINDOWS];
    signal empty[WINDOWS];
    signal preimage[WINDOWS + 3];
    preimage[0] <== sealKey;
    preimage[1] <== INDEX;
    preimage[WINDOWS + 2] <== salt;

    for (var i = 0; i < WINDOWS; i++) {
        var word = 0;
        for (var m = 0; m < OBJECTIVES; m++) {
            Range(28)(good[i][m]);
            Range(28)(bad[i][m]);
            goods[m] += good[i][m];
            bads[m] += bad[i][m];
            word += good[i][m] * (1 << (56 * m)) + bad[i][m] * (1 << (56 * m + 28));
        }
        // Below 2^224 by the ranges above, so it is zero only if every count is.
        counts[i] <== word;

        Boolean()(observed[i]);
        Boolean()(excluded[i]);
        Boolean()(active[i]);
        if (i == 0) {
            Excludes()(active[i], 1 - activeBefore);
        } else {
            Excludes()(active[i], 1 - active[i - 1]);
        }
        // observed + excluded is 0 or active: never both, never outside the period.
        Excludes()(observed[i] + excluded[i], observed[i] + excluded[i] - active[i]);
        Excludes()(1 - observed[i], counts[i]);

        empty[i] <== IsZero()(counts[i]);
        actives += active[i];
        observeds += observed[i];
        excludeds += excluded[i];
        empties += empty[i];
        preimage[i + 2] <== counts[i] + observed[i] * (1 << 224) + excluded[i] * (1 << 225);
    }

    hash <== Sponge(WINDOWS + 3, TAG_BLOCK())(preimage);
    for (var m = 0; m < OBJECTIVES; m++) {
        goodSum[m] <== goods[m];
        badSum[m] <== bads[m];
    }
    activeCount <== actives;
    observedCount <== observeds;
    excludedCount <== excludeds;
    // Idle is observed and empty. Unobserved windows are all empty, so they are taken off.
    idleCount <== empties - (WINDOWS - observeds);
}
