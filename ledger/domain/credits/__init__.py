"""From verdicts to money: what is owed for a period, by which steps, and what becomes of it later."""
