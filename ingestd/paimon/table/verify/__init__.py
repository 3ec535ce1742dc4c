"""Verification of tables."""
