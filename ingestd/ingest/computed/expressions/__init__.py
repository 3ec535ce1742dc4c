"""SQL expressions on Arrow columns: parsed once, bound to column types, evaluated on batches."""
