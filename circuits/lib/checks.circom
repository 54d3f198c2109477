// Every refusal of the circuits goes through the templates of this file, so that a reader finds
// them by name and the tests can build a control circuit without them: a lie counts as refused
// only if it passes where these checks are blank.
pragma circom 2.1.6;

include "bitify.circom";

// in == 0
template Zero() {
    signal input in;
    in === 0;
}

// in is 0 or 1
template Boolean() {
    signal input in;
    in * (in - 1) === 0;
}

// a == b
template Same() {
    signal input a;
    signal input b;
    a === b;
}

// a * b == 0: where a is not zero, b must be
template Excludes() {
    signal input a;
    signal input b;
    a * b === 0;
}

// 0 <= in < 2^BITS
template Range(BITS) {
    signal input in;
    _ <== Num2Bits(BITS)(in);
}

// 0 <= in <= MAX, for MAX < 2^BITS. Both decompositions are needed: in below 2^BITS makes
// MAX - in either a true difference or r minus a small number, which has no BITS bits.
template AtMost(BITS, MAX) {
    signal input in;
    _ <== Num2Bits(BITS)(in);
    _ <== Num2Bits(BITS)(MAX - in);
}
