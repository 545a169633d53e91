"""Haney and others (2017): formal privacy for employer-employee statistics, and what it costs beside the legacy."""
