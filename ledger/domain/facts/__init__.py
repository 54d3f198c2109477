"""From facts to counts per window: what each kind of facts says under an agreement, and what is believed of it."""
