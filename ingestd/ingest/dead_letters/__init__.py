"""Dead letters: rejected records, stored with their bytes."""
