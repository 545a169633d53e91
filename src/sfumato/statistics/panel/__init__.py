"""Job histories: workforce indicators, flows of workers and graphs of employers, protected by permanent factors."""
