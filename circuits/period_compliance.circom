// Which objectives a period met, and the credit that follows, from sealed counts by signed terms.
// The statement, its inputs and its public signals are described in docs/attestation-format.md.
pragma circom 2.1.6;

include "poseidon.circom";
include "comparators.circom";
include "lib/checks.circom";
include "lib/hash.circom";
include "lib/windows.circom";
include "lib/objective.circom";
include "lib/credit.circom";
include "generated/tags.circom";

// BLOCKS blocks of WINDOWS windows, OBJECTIVES objectives of TIERS tiers.
//
// docHi, docLo, collector, sealKey and the salts are opaque: they enter hashes only, where every
// field element means itself. Every input that arithmetic touches is range-checked.
// ctx enters the credit commitment, which is computed even when the credit is public: that makes
// every proof one for its ctx.
template PeriodCompliance(BLOCKS, WINDOWS, OBJECTIVES, TIERS) {
    // Public signals, in this order: outputs first, then the public inputs as declared here.
    signal output summary;
    signal output credit;
    signal input ctx;
    signal input telemetryRoot;
    signal input termsHash;
    signal input baseCommit;

    // Sealed telemetry.
    signal input sealKey;
    signal input blockSalt[BLOCKS];
    signal input good[BLOCKS * WINDOWS][OBJECTIVES];
    signal input bad[BLOCKS * WINDOWS][OBJECTIVES];
    signal input observed[BLOCKS * WINDOWS];
    signal input excluded[BLOCKS * WINDOWS];
    signal input active[BLOCKS * WINDOWS];

    // Signed terms.
    signal input docHi;
    signal input docLo;
    signal input collector[2];
    signal input sumCapped;
    signal input halfUp;
    signal input halfEven;
    signal input hidden;
    signal input exact;
    signal input cap;
    signal input minimum;
    signal input floorBps;
    signal input used[OBJECTIVES];
    signal input target[OBJECTIVES];
    signal input threshold[OBJECTIVES][TIERS];
    signal input tierBps[OBJECTIVES][TIERS];

    // Money.
    signal input fee;
    signal input baseSalt;
    signal input creditSalt;
    signal input quotient;
    signal input remainder;

    // summary has 10 bits for a number of windows.
    assert(BLOCKS * WINDOWS < 1024);
    assert(OBJECTIVES <= 4);

    // --- telemetry: ranges, masks, sums, root ------------------------------------------------
    component block[BLOCKS];
    var windowCount = 0;
    var observedCount = 0;
    var excludedCount = 0;
    var idleCount = 0;
    var goodSum[OBJECTIVES];
    var badSum[OBJECTIVES];
    for (var m = 0; m < OBJECTIVES; m++) { goodSum[m] = 0; badSum[m] = 0; }

    signal rootPreimage[BLOCKS + 2];
    rootPreimage[0] <== sealKey;
    Same()(active[0], 1);
    for (var b = 0; b < BLOCKS; b++) {
        block[b] = WindowBlock(b, WINDOWS, OBJECTIVES);
        block[b].sealKey <== sealKey;
        block[b].salt <== blockSalt[b];
        if (b == 0) {
            block[b].activeBefore <== 1;
        } else {
            block[b].activeBefore <== active[b * WINDOWS - 1];
        }
        for (var k = 0; k < WINDOWS; k++) {
            var i = b * WINDOWS + k;
            block[b].good[k] <== good[i];
            block[b].bad[k] <== bad[i];
            block[b].observed[k] <== observed[i];
            block[b].excluded[k] <== excluded[i];
            block[b].active[k] <== active[i];
        }
        rootPreimage[b + 2] <== block[b].hash;
        windowCount += block[b].activeCount;
        observedCount += block[b].observedCount;
        excludedCount += block[b].excludedCount;
        idleCount += block[b].idleCount;
        for (var m = 0; m < OBJECTIVES; m++) {
            goodSum[m] += block[b].goodSum[m];
            badSum[m] += block[b].badSum[m];
        }
    }
    rootPreimage[1] <== windowCount;
    signal root <== Sponge(BLOCKS + 2, TAG_TELEMETRY())(rootPreimage);
    Same()(telemetryRoot, root);

    // --- coverage: below the floor of the terms there is no proof ------------------------------
    AtMost(14, 10000)(floorBps);
    signal coverageNeeded <== (windowCount - excludedCount) * floorBps;
    signal uncovered <== LessThan(24)([observedCount * 10000, coverageNeeded]);
    Zero()(uncovered);

    // --- terms: flags and hash ---------------------------------------------------------------
    Boolean()(sumCapped);
    Boolean()(hidden);
    var TERMS = 8 + 2 * OBJECTIVES + 2 * OBJECTIVES * TIERS;
    signal termsPreimage[TERMS];
    termsPreimage[0] <== docHi;
    termsPreimage[1] <== docLo;
    termsPreimage[2] <== collector[0];
    termsPreimage[3] <== collector[1];
    termsPreimage[4] <== sumCapped + 2 * halfUp + 4 * halfEven + 8 * hidden + 16 * exact;
    termsPreimage[5] <== cap;
    termsPreimage[6] <== minimum;
    termsPreimage[7] <== floorBps;
    for (var m = 0; m < OBJECTIVES; m++) {
        termsPreimage[8 + m] <== used[m];
        termsPreimage[8 + OBJECTIVES + m] <== target[m];
        for (var k = 0; k < TIERS; k++) {
            termsPreimage[8 + 2 * OBJECTIVES + m * TIERS + k] <== threshold[m][k];
            termsPreimage[8 + 2 * OBJECTIVES + (OBJECTIVES + m) * TIERS + k] <== tierBps[m][k];
        }
    }
    signal terms <== Sponge(TERMS, TAG_TERMS())(termsPreimage);
    Same()(termsHash, terms);

    // --- objectives, credit ------------------------------------------------------------------
    component objective[OBJECTIVES];
    component combine = Combine(OBJECTIVES);
    combine.sumCapped <== sumCapped;
    var states = 0;
    for (var m = 0; m < OBJECTIVES; m++) {
        objective[m] = Objective(TIERS);
        objective[m].used <== used[m];
        objective[m].target <== target[m];
        objective[m].threshold <== threshold[m];
        objective[m].tierBps <== tierBps[m];
        objective[m].good <== goodSum[m];
        objective[m].bad <== badSum[m];
        combine.bps[m] <== objective[m].bps;
        states += objective[m].state * (1 << (2 * m));
    }

    signal base <== Poseidon(4)([TAG_BASE(), sealKey, fee, baseSalt]);
    Same()(baseCommit, base);
    signal amount <== Credit()(
        fee, cap, minimum, combine.out, halfUp, halfEven, exact, quotient, remainder
    );
    signal commitment <== Poseidon(4)([TAG_CREDIT(), ctx, amount, creditSalt]);

    credit <== amount + hidden * (commitment - amount);
    summary <== states + windowCount * (1 << 8) + observedCount * (1 << 18)
        + excludedCount * (1 << 28) + idleCount * (1 << 38);
}
