"""Random nested columns come back from every file format, as written and as compacted."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.read.incremental_read import read_changelog
from ingestd.paimon.table.read.table_read import read_table
from tests.support.examples import examples
from tests.support.native_tables import NOW_MS, native_table, put
from tests.support.nested_shapes import cells, nested_types

FORMATS = ["orc", "parquet", "avro"]


@settings(max_examples=examples(30))
@given(st.data(), nested_types(), st.sampled_from(FORMATS), st.sampled_from(FORMATS))
def test_what_is_written_and_compacted_is_read(
    data: st.DataObject, kind: Any, written: str, compacted: str
) -> None:
    batches = data.draw(st.lists(cells(kind), min_size=1, max_size=3))
    table = native_table(
        "/w", [("id", "INT"), ("v", kind)], keys=["id"], io=MemoryFileIO(),
        options={"bucket": "1", "file.format": compacted, "file.format.per.level": f"0:{written}",
                 "changelog-producer": "input", "changelog-file.format": compacted},
    )  # fmt: skip
    expected: dict[int, Any] = {}
    for batch in batches:
        # Keys meet those of the batch before, so that a compaction merges.
        rows = {len(expected) // 2 + n: cell for n, cell in enumerate(batch)}
        snapshot = put(table, [{"id": key, "v": cell} for key, cell in rows.items()]).snapshot
        expected |= rows
        assert snapshot is not None
        changes = read_changelog(table, snapshot.id)
        assert changes.sort_by("id").column("v").to_pylist() == _plain(rows, table)
    assert _rows(table) == _plain(expected, table)
    assert compact_table(table, now_ms=NOW_MS, full=True).status == "compacted"
    assert _rows(table) == _plain(expected, table)


@settings(max_examples=examples(15))
@given(st.data(), nested_types(), st.sampled_from(FORMATS))
def test_appended_rows_are_read(data: st.DataObject, kind: Any, file_format: str) -> None:
    table = native_table("/w", [("id", "INT"), ("v", kind)], io=MemoryFileIO(),
                         options={"bucket": "-1", "file.format": file_format})  # fmt: skip
    expected: dict[int, Any] = {}
    for _ in range(3):
        rows = {len(expected) + n: cell for n, cell in enumerate(data.draw(cells(kind)))}
        put(table, [{"id": key, "v": cell} for key, cell in rows.items()])
        expected |= rows
    assert compact_table(table, now_ms=NOW_MS, full=True).status == "compacted"
    assert _rows(table) == _plain(expected, table)


def _rows(table: Any) -> list[Any]:
    found: list[Any] = read_table(table).sort_by("id").column("v").to_pylist()
    return found


def _plain(rows: dict[int, Any], table: Any) -> list[Any]:
    """The cells in the order of their keys, in Python's form."""
    ordered = [rows[key] for key in sorted(rows)]
    found: list[Any] = column_of(ordered, table.schema.fields[1].type).to_pylist()
    return found
