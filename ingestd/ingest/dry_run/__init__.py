"""A batch that is tried and never written."""
