"""Statements: issued, sealed, proved, restated and final, with the credit lines that they pay."""
