"""Merge engines, one module each, on Arrow tables."""
