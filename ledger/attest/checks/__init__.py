"""The offline verifier: a bundle, a trust file, and one check after the other."""
