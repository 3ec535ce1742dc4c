"""Read a table: as of a snapshot, between two, as changes, by key."""
