"""What a release publishes: a folder for each kind of statistic, all of the same shape."""
