"""What was published about the bottom-up hypercube: figures to print beside ours, never results.

Source: J. Li, T. Krenzke, "A Proposed 'Bottom-Up' Differential Privacy Approach for Disclosure Prevention in Data Query
Tool", Westat, 2020.
"""

from fractions import Fraction

TABLE_2_EPSILON, TABLE_2_CAP = Fraction(2), 7
TABLE_2 = {
    0: "0.76159",
    1: "0.10307",
    2: "0.013949",
    3: "0.0018878",
    4: "0.0002555",
    5: "0.0000346",
    6: "0.0000047",
    7: "0.0000006",
}
"""The probability of a perturbation by +j, and by −j, as it is printed."""
DELTA = "0.0000006"

EPSILON, CAP = Fraction(7), 1
"""The noise of the evaluation in section 4."""
CHANCE_OF_NOISE = 0.235
"""Of ±1, as section 4 says."""
VARIANCE_OF_NOISE = 0.00182
RECORDS, CELLS, RUNS, CYCLES, CONVERGED = 182, 17_280, 1_000, 10, 224
CARDINALITIES = (5, 4, 3, 3, 3, 2, 2, 2, 2, 2)
"""Two to five categories each and 17,280 cells: this is the only way."""

TABLE_4 = {
    1: (6.592, 0.000, 1.000),
    2: (3.255, 1.684, 0.483),
    3: (1.340, 1.082, 0.193),
    4: (0.522, 0.494, 0.054),
    5: (0.200, 0.200, 0.0),
    6: (0.077, 0.078, 0.0),
    7: (0.030, 0.030, 0.0),
    8: (0.012, 0.012, 0.0),
    9: (0.005, 0.004, 0.0),
    10: (0.002, 0.002, 0.0),
}
"""By the number of dimensions: variance of the noise without and with calibration, and the reduction."""
