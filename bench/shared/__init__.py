"""What several parts use: timing, the gate, the report."""
