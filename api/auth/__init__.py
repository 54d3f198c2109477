"""Who asks: credentials become a principal here, and every route says what it needs."""
