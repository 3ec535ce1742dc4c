"""Read a table: as of a snapshot, between two snapshots, as changes, or by key."""
