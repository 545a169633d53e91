"""The smallest epsilon that gives an employee report a stated accuracy."""
