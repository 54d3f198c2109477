"""Taking facts in: batches of every kind, what is new in them, and what is wrong with them."""
