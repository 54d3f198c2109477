// Logged incidents: in order, apart from each other, and their valid requests.
pragma circom 2.1.6;

include "comparators.circom";
include "checks.circom";

// Per slot: `active` (a prefix mask), the first window of the run counted from 0, how many windows
// it has, and the good and bad requests in them. Windows have 10 bits, as in summary; 1023 windows
// of 28 bits are below 2^38.
//
// A run begins where the one before has ended or later. So no request is paid for twice, and one
// list of incidents has one order and one hash.
template Incidents(SLOTS) {
    signal input active[SLOTS];
    signal input first[SLOTS];
    signal input windows[SLOTS];
    signal input good[SLOTS];
    signal input bad[SLOTS];

    signal output word[SLOTS];
    signal output count;
    signal output windowCount;
    signal output valid;

    var actives = 0;
    var covered = 0;
    var requests = 0;
    signal noWindow[SLOTS];
    signal apart[SLOTS];
    for (var i = 0; i < SLOTS; i++) {
        Boolean()(active[i]);
        Range(10)(first[i]);
        Range(10)(windows[i]);
        Range(38)(good[i]);
        Range(38)(bad[i]);
        word[i] <== first[i] + windows[i] * (1 << 10) + good[i] * (1 << 20) + bad[i] * (1 << 58);
        // Below 2^96 by the ranges above, so it is zero only if every part is.
        Excludes()(1 - active[i], word[i]);
        noWindow[i] <== IsZero()(windows[i]);
        Excludes()(active[i], noWindow[i]);
        if (i == 0) {
            apart[i] <== 1;
        } else {
            Excludes()(active[i], 1 - active[i - 1]);
            apart[i] <== LessThan(12)([first[i - 1] + windows[i - 1], first[i] + 1]);
            Excludes()(active[i], 1 - apart[i]);
        }
        actives += active[i];
        covered += windows[i];
        requests += good[i] + bad[i];
    }
    // Runs that do not overlap end at window 2046 at the latest; a period has at most 1023.
    Range(10)(covered);
    count <== actives;
    windowCount <== covered;
    valid <== requests;
}
