"""Scheduling of maintenance for each table, and its jobs."""
