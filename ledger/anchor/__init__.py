"""The chain: registry and verifier contracts, signed transactions, the embedded chain and its replay."""
