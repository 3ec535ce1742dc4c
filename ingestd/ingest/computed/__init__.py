"""Computed columns and metadata columns, which tables have in addition to source columns."""
