"""Decode chunks of records into change batches, with one module per data format."""
