"""One column of messages as an Arrow array: what it means and what reads it."""
