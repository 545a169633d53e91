"""Start: look at files that nobody has described yet, propose what they are, and write a first release file."""
