"""A table about a table: system tables and statistics."""
