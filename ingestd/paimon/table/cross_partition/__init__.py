"""Primary keys that are unique across partitions: the index of keys, and moves."""
