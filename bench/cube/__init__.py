"""A cube of millions of cells and its queries."""
