"""True numbers, some of them withheld, rounded or merged: counts and totals of jobs and of records."""
