"""Compaction: plan, rewrite, changelog."""
