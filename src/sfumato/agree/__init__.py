"""What must be decided for several tables together; it costs no budget, because it never sees the data.

published        what a release does with stored answers on the way to the bundle; begin here
reconcile        the values of tables that share sums, made to agree, and rounded
least_squares    the algebra: the smallest change that gives tables their margins; cubes use it too
whole_numbers    whole numbers with given margins; cubes use it too
agreed_errors    errors of agreed values, from published numbers
expected_errors  the same before anything is counted, from public numbers: for plans
largest          how large an establishment of a cell can be, by finer tables
composite        estimates beside agreed values, from the rest of the table
"""
