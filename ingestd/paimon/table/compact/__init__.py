"""Compaction: planning, rewriting, changelog."""
