"""The frame: what the confidential data are, as a release file describes them."""
