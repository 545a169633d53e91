"""Methods of protection: Cells in, protected values out; one file per family."""
