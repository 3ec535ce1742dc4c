"""Whether a table is sound."""
