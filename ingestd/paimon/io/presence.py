"""Whether a file is there, asked with one request: an object store is not made to list."""

from ingestd.paimon.io.file_io import FileIO


def has_file(io: FileIO, path: str) -> bool:
    """Whether a file is there, for names that no directory has.

    `FileIO.exists` knows directories, too, which an object store has to list for what is not
    there. Raises StorageError.
    """
    try:
        io.size(path)
    except FileNotFoundError:
        return False
    return True
