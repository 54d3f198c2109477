"""Adapters that turn files into domain values: agreement documents and request logs."""
