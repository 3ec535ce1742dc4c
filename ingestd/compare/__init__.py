"""Compare tables of the lake with the tables of the source database."""
