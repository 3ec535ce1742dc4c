"""What a listing says of a file or directory: enough to tell old garbage from new files."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A name in a directory; `size` in bytes, `modified_ms` in milliseconds of the epoch."""

    name: str
    is_directory: bool
    size: int
    modified_ms: int
