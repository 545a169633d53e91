"""The benchmark: sfumato beside DuckDB alone and beside other tools; `python -m bench.run` runs it."""
