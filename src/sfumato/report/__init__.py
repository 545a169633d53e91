"""Assess a release: the confidential report says what the protection costs and which attacks it withstands."""
