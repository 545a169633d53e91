"""Publish: a bundle of tables, their structure, the privacy statement and a manifest."""
