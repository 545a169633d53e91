"""SDMX REST 2.1: structures, and data as XML, JSON and CSV, over the same tables as every other interface."""
