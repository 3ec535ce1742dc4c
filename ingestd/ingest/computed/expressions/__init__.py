"""SQL expressions on Arrow columns: read once, bound to column types, run on whole batches."""
