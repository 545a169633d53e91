"""A federal workforce under noise infusion: the part `infusion`."""
