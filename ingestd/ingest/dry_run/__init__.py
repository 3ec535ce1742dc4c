"""Run a batch without writing anything."""
