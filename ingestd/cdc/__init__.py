"""Record chunks into change batches, one module per data format."""
