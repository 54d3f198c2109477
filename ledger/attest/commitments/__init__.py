"""What a proof speaks of: the statement, the terms and the sealed counts as numbers in a field."""
