// H(t; x_0 .. x_F-1) of docs/attestation-format.md: s := t; per 15 inputs, zero-padded,
// s := Poseidon16(s, block). The number of inputs is fixed by the template, so padding is not
// ambiguous; the tag tells one use from another.
pragma circom 2.1.6;

include "poseidon.circom";

template Sponge(F, TAG) {
    signal input in[F];
    signal output out;

    var CHUNKS = (F + 14) \ 15;
    signal state[CHUNKS + 1];
    component permutation[CHUNKS];

    state[0] <== TAG;
    for (var c = 0; c < CHUNKS; c++) {
        permutation[c] = Poseidon(16);
        permutation[c].inputs[0] <== state[c];
        for (var j = 0; j < 15; j++) {
            var k = c * 15 + j;
            if (k < F) {
                permutation[c].inputs[j + 1] <== in[k];
            } else {
                permutation[c].inputs[j + 1] <== 0;
            }
        }
        state[c + 1] <== permutation[c].out;
    }
    out <== state[CHUNKS];
}
