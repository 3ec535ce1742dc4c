"""Rows of one table out of the messages of one batch."""
