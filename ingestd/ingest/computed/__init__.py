"""Columns that no message carries: computed, and of a record's metadata."""
