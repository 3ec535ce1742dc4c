"""What every store has to do with names, large files and directories."""

import os
import time

import pytest

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.io.probes import prove_exclusive


def check_names(io: FileIO, root: str) -> None:
    """A name is created once, by one writer, and overwritten only on request."""
    prove_exclusive(io, root)
    assert io.try_write_atomic(f"{root}/snapshot-1", b"mine")
    assert not io.try_write_atomic(f"{root}/snapshot-1", b"theirs")
    assert io.try_write_atomic(f"{root}/snapshot-1", b"mine"), "as after a lost answer"
    assert io.read_bytes(f"{root}/snapshot-1") == b"mine"
    io.overwrite(f"{root}/snapshot-1", b"hint")
    assert io.read_bytes(f"{root}/snapshot-1") == b"hint"
    with pytest.raises(FileNotFoundError):
        io.read_bytes(f"{root}/snapshot-2")


def check_large_file(io: FileIO, root: str) -> None:
    """It is written in parts, read in ranges, and never replaced."""
    content = os.urandom(20 << 20)
    with io.open_output(f"{root}/data") as stream:
        stream.write(content)
    with io.open_input(f"{root}/data") as stream:
        stream.seek(9 << 20)
        assert stream.read(1000) == content[9 << 20 :][:1000]
        assert stream.size() == len(content)
    with pytest.raises(StorageError, match="already exists"), io.open_output(f"{root}/data") as out:
        out.write(b"other")
    assert io.read_bytes(f"{root}/data") == content


def check_directories(io: FileIO, root: str) -> None:
    """They are seen, listed, renamed and deleted."""
    io.make_directory(f"{root}/db.db")
    assert io.exists(f"{root}/db.db")
    assert io.list_names(f"{root}/db.db") == []
    io.write_new(f"{root}/db.db/t/schema/schema-0", b"{}")
    assert io.list_names(root) == ["db.db"]
    (entry,) = io.list_entries(f"{root}/db.db/t/schema")
    assert (entry.name, entry.is_directory, entry.size) == ("schema-0", False, 2)
    assert abs(entry.modified_ms / 1000 - time.time()) < 300
    io.rename_directory(f"{root}/db.db/t", f"{root}/db.db/u")
    assert io.list_names(f"{root}/db.db") == ["u"]
    io.delete_tree(f"{root}/db.db")
    assert not io.exists(f"{root}/db.db")
