"""What the use cases ask of the outside; adapters implement it, and one suite of tests runs over all of them."""
