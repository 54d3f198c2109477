"""Instants, intervals of them, and calendars with their periods."""
