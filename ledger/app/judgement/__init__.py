"""Judging windows by the facts, while a period runs and when it has closed, and the violations that follow."""
