"""Entries of a directory listing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A file or directory in a listing, with its `name` in the listed directory.

    `size` is in bytes, `modified_ms` in milliseconds since the epoch.
    """

    name: str
    is_directory: bool
    size: int
    modified_ms: int
