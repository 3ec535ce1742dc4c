"""Columns that tables have in addition to source columns (computed, metadata), and row filters."""
