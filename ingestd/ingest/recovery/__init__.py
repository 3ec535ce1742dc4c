"""Pipeline recovery: find the start offset of each topic partition, and check for lost records."""
