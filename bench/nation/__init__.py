"""A nation on one machine, and where a run spends its time: the parts `nation` and `steps`."""
