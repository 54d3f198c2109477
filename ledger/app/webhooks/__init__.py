"""Telling others what happened."""
