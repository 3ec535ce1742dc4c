"""The public library: open tables, read them, write and commit batches."""
