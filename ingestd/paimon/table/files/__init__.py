"""Data files, their deletion vectors and indexes."""
