"""Keys that are unique over all partitions: where each is, where its next row goes."""
