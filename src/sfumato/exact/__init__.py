"""True numbers, some of them withheld: which, and the proof that the others do not tell them.

trees      the codes of an attribute at all levels
system     all cells of all tables as one vector, and every sum among them; begin here
rules      which cells are sensitive, and how far from the truth a reader's bounds have to be
programs   all programs over a system, in HiGHS: linear ones and those in whole numbers
pattern    which other cells are withheld beside sensitive ones
proof      what a reader can work out, for every sensitive cell; of any pattern, whoever made it
optimum    the cheapest pattern of a small system, as a yardstick
attacks    what readers of several kinds find, for the confidential report
intervals  what readers can work out from bounds of every cell, and the proof that it is little enough
rounding   multiples of a base instead of numbers, with all sums; by programs, or by rounding_search where these fail
shares     what contributors know of sums before anything is published
coarsening cuts through the trees at which nothing is sensitive
refinement what readers of several coarsened tables and releases work out of cells that none shows
ranges     classes instead of numbers
"""
