"""The dashboard: one answer with all its figures, and the pages and modules that show them."""
