"""The tables for language models and agents, by the Model Context Protocol: every figure with its error and status."""
