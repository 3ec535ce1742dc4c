"""What programs use of the table format: open tables, read them, write and commit batches."""
