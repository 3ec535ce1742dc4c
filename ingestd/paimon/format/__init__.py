"""File formats of data and changelog files, one module each."""
