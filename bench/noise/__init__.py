"""Every sampler by itself: the part `samplers`."""
