"""The only door to file systems."""
