"""Primary keys that are unique across partitions: the key index, and moves between partitions."""
