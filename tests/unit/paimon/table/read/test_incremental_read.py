from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.table.read.incremental_read import iter_changed
from ingestd.paimon.table.read.table_read import TableReader
from tests.support.native_tables import native_table, put


def test_rows_that_snapshots_brought_are_merged_and_nothing_else() -> None:
    table = native_table(
        "/w", [("k", "INT"), ("v", "STRING")], keys=["k"], options={"bucket": "2"},
        io=MemoryFileIO(),
    )  # fmt: skip
    put(table, [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
    put(table, [{"k": 2, "v": "c"}, {"k": 3, "v": "d"}])
    put(table, [{"k": 3, "_kind": 3}, {"k": 2, "v": "e"}])

    def found(first: int, last: int | None, text: str | None = None) -> dict[int, str]:
        predicate = None if text is None else parse_predicate(text, table.schema.fields)
        parts = iter_changed(TableReader(table, predicate=predicate), first, last)
        return {row["k"]: row["v"] for part in parts for row in part.to_pylist()}

    assert found(1, 1) == {1: "a", 2: "b"}
    assert found(2, 2) == {2: "c", 3: "d"}
    assert found(2, None) == {2: "e"}
    assert found(1, 9) == {1: "a", 2: "e"}
    assert found(4, None) == {}
    assert found(2, 2, "v = 'c'") == {2: "c"}
