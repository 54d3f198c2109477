"""sla-ledger: an event-sourced SLA ledger whose credits follow, provably, from committed telemetry."""
