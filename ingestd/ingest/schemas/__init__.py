"""Columns that were found, columns that a table has, and how one follows the other."""
