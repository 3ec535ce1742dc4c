"""SQL expressions on Arrow columns: parsed once, bound to column types, run on whole batches."""
