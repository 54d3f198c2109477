"""Periods of agreements: what they wait for, when they close, what comes late, what is excluded from them."""
