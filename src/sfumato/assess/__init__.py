"""Assess: what the protection costs; confidential by construction, because it sees true values."""
