"""The types of events: the shape of each payload, and how older ones are read."""
