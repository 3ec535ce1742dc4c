"""Scheduling of maintenance for each table, and the batch events from which it is derived."""
