"""Dead letters: rows that became none, kept with their bytes."""
