"""Data files and what belongs to them: their rows, deletion vectors, indexes."""
