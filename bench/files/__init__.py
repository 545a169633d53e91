"""Data files that are no Parquet: how long it takes to read them, beside DuckDB's own reading."""
