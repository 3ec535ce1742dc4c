"""Rows of a batch become files of level 0, which nobody sees yet."""
