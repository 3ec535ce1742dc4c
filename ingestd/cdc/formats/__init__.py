"""The data formats, one file each."""
