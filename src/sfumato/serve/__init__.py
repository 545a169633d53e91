"""Serve bundles over HTTP: one table model, and the interfaces that statisticians' tools already speak."""
