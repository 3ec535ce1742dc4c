"""Rewrites of files other than compaction: rescaling, sorting, deletes, repairs."""
