"""The only room that touches records: Ibis expressions over DuckDB or Spark."""
