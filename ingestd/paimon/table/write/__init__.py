"""Write rows to files of level 0, not yet visible."""
