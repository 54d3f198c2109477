"""What was reported, row by row, before any agreement is asked: requests, readings of counters, telemetry."""
