"""Iceberg metadata of Paimon tables, with which Iceberg readers read the same data files."""
