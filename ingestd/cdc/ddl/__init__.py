"""Column renames and drops, inferred from DDL statements of source databases."""
