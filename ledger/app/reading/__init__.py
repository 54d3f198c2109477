"""What can be asked of a ledger, as each reader may see it."""
