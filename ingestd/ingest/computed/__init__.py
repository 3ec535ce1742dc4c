"""Computed columns and metadata columns: columns that no message contains."""
