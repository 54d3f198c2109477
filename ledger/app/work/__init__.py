"""Work that follows later: the outbox, who holds what of it, and when it is tried again."""
