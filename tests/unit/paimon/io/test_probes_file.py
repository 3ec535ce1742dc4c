from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.io.probes import has_file
from tests.support.faulty_file_io import FaultyFileIO


def test_a_file_is_looked_for_by_one_call_that_needs_no_listing() -> None:
    io = FaultyFileIO(MemoryFileIO())
    io.write_new("/lake/a", b"x")
    io.calls.clear()
    assert has_file(io, "/lake/a")
    assert not has_file(io, "/lake/b")
    assert io.calls == [("size", "/lake/a"), ("size", "/lake/b")]
