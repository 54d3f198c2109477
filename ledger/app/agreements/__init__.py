"""Agreements from their registration to their end."""
