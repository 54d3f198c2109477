"""The cryptography that proofs and signatures stand on: fields, curves, hashes, pairings."""
