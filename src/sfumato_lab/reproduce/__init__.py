"""Reproduce: published evaluations done again on a synthetic economy, beside what was published."""
