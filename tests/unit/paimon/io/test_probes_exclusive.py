import pytest

from ingestd.errors import StorageError
from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.io.probes import prove_exclusive


class Careless(MemoryFileIO):
    """A store that ignores the condition of a put."""

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        self.overwrite(path, data)
        return True


def test_a_store_that_keeps_writers_apart_is_left_as_it_was() -> None:
    io = MemoryFileIO()
    prove_exclusive(io, "/lake")
    assert io.files == {}


def test_a_store_that_does_not_is_refused() -> None:
    io = Careless()
    with pytest.raises(StorageError, match="two writers apart"):
        prove_exclusive(io, "/lake")
    assert io.files == {}
