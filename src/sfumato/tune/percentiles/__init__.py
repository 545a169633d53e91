"""What percentiles of small cells cost, by size and epsilon, and which curve suits."""
