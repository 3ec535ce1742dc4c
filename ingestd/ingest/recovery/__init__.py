"""The start of a pipeline: what the tables say, what the logs still have, and where to read on."""
