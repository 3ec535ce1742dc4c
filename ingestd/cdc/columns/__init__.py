"""Columns of messages: the meaning of their values, and the readers that build Arrow arrays."""
