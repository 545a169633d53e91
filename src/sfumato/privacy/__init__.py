"""Guarantees, their composition, and the ledger that keeps what was spent."""
