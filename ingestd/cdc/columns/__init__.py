"""Columns of messages: their meaning, and the readers that build Arrow arrays from their values."""
