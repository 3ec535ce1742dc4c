"""The start of a pipeline: find the offset of each log to read from, and check for lost records."""
