"""Metadata of a table: schemas, snapshots, manifests, and the files they refer to."""
