"""What was published about statistics from small samples: figures to print beside ours, never results.

Source: I. M. Schmutte, "Formal Privacy in Census Data", NBER Methods Lecture, 17 July 2020. It prints few numbers: its
figures are formulas and statements, and what it cites of Chetty and Friedman (2019) and of the earnings of graduates.
"""

from fractions import Fraction

EPSILON = Fraction(8)
"""Of every estimate in the Opportunity Atlas."""
SECTORS, MOST_YEARS, CHI_VALUES = 3, 10, 9
"""Of employee reports: sectors of employment, years since leaving, and values of χ, one for each title and sector."""

LEAST_IMPROVEMENT = 0.15
"""Aims, not of the paper: how much better than the plain cumulative sum the improved curve is to be, on average."""
MOST_MEDIAN_ERROR = 0.05
"""And how far a median of a hundred graduates or more may be off."""
EPSILON_OF_A_CELL = Fraction(3, 2)
"""At which percentiles are compared."""
