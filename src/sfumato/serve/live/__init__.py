"""Ad-hoc tables over confidential data, for those who have a token; docs/serve-live.md describes them."""
