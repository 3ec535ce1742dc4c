"""Casts of values to other types and to text, as in Java."""
