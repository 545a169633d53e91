"""The bundle: published tables, their structure, the privacy statement and a manifest, written and read."""
