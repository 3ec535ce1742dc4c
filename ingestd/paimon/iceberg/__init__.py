"""Iceberg metadata beside a table, so that Iceberg readers read the same data files."""
