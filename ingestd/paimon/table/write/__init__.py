"""Rows of a batch become files of level 0, which no one sees yet."""
