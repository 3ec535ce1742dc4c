"""Column renames and drops, inferred from DDL statements of the source database."""
