"""Attestation: keys and signatures, circuit statements, proofs and the bundles that carry them."""
