"""Totals and means of the values of units, such as the turnover of businesses, with a guarantee."""
