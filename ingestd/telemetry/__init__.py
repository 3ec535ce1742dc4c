"""Traces: what a batch did and how long each part took, as spans for a collector."""
