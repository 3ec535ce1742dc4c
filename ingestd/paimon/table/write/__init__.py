"""Write rows to level-0 files, which are not visible before they are committed."""
