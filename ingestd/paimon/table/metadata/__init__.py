"""What a table is made of: schemas, snapshots, manifests, and the files they name."""
