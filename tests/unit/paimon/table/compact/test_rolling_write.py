import dataclasses
import gc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.spec.binary_row import EMPTY_ROW, deserialize_row
from ingestd.paimon.spec.data_file import DataFileMeta, FileSource
from ingestd.paimon.table.compact.rolling_write import FileTarget, RollingWriter
from ingestd.paimon.table.files.data_files import read_data_file
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket
from tests.support.native_tables import native_table, rows_table

COLUMNS = [("k", "INT"), ("v", "STRING")]


def table_of(folder: Path, **options: str) -> FileStoreTable:
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return native_table(folder, COLUMNS, keys=["k"], options={"bucket": "1", **given})


def rows_of(table: FileStoreTable, keys: range) -> pa.Table:
    rows = [{"k": k, "v": f"{k * 7919:x}" * 5, "_kind": 3 if k % 10 == 0 else 0} for k in keys]
    return rows_table(table.schema, rows, 100 + keys.start)


def read(table: FileStoreTable, files: list[DataFileMeta]) -> list[int]:
    parts = [read_data_file(table, EMPTY_ROW, 0, file, table.schema.fields) for file in files]
    return [k for part in parts for k in part.column("k").to_pylist()]


@pytest.mark.parametrize(("file_format", "target"), [("parquet", 4), ("orc", 1), ("avro", 4)])
@pytest.mark.parametrize("step", [7, 100, 1000])
def test_files_roll_at_the_target_size(
    file_format: str, target: int, step: int, tmp_path: Path
) -> None:
    options = {"target-file-size": f"{target} kb", "file.format": file_format}
    table = table_of(tmp_path, **options)
    writer = RollingWriter(FileTarget(table, (), 0, 3))
    for start in range(0, 1000, step):
        writer.add(rows_of(table, range(start, min(start + step, 1000))))
    files = writer.close()
    assert len(files) > 2
    assert read(table, files) == list(range(1000))
    assert sum(file.row_count for file in files) == 1000
    assert sum(file.delete_row_count or 0 for file in files) == 100
    ends = [
        deserialize_row([table.schema.fields[0].type], key)[0]
        for file in files
        for key in (file.min_key, file.max_key)
    ]
    assert ends == sorted(ends)
    assert all(
        file.file_size == table.io.size(f"{table.path}/bucket-0/{file.file_name}") for file in files
    )


@pytest.mark.parametrize("step", [300, 5000])
def test_full_files_have_the_target_size(step: int, tmp_path: Path) -> None:
    table = table_of(tmp_path, **{"target-file-size": "64 kb", "file.format": "avro"})
    writer = RollingWriter(FileTarget(table, (), 0, 3))
    for start in range(0, 20_000, step):
        writer.add(rows_of(table, range(start, min(start + step, 20_000))))
    *full, _ = writer.close()
    assert len(full) == 3
    assert all(0.95 < file.file_size / (64 << 10) < 1.04 for file in full)


def test_the_target_is_of_bytes_on_disk_where_a_format_hides_its_size(tmp_path: Path) -> None:
    table = table_of(tmp_path, **{"target-file-size": "64 kb", "file.format": "orc"})
    writer = RollingWriter(FileTarget(table, (), 0, 3))
    writer._group_bytes = 1
    rows = [rows_of(table, range(start, start + 500)) for start in range(0, 10_000, 500)]
    for part in rows:
        writer.add(part)
    (file,) = writer.close()
    assert file.file_size < 64 << 10 < sum(part.nbytes for part in rows)


def test_a_file_says_the_same_of_itself_as_one_written_at_once(tmp_path: Path) -> None:
    options = {"file-index.bloom-filter.columns": "v", "file-index.bitmap.columns": "k"}
    table = table_of(tmp_path, **options)
    rows = rows_of(table, range(50))
    writer = RollingWriter(FileTarget(table, (), 0, 0))
    writer.add(rows.slice(0, 20))
    writer.add(rows.slice(20, 0))
    writer.add(rows.slice(20))
    (found,) = writer.close()
    message = write_bucket(table, EMPTY_ROW, 0, rows, new_name=lambda: "data-one.parquet")
    (whole,) = message.new_files
    assert found.file_source == FileSource.COMPACT
    assert (
        dataclasses.replace(
            found,
            file_name=whole.file_name,
            extra_files=tuple(
                name.replace(found.file_name, whole.file_name) for name in found.extra_files
            ),
            creation_time_ms=whole.creation_time_ms,
            file_source=whole.file_source,
        )
        == whole
    )


def test_changelog_files_have_a_name_and_a_format_of_their_own(tmp_path: Path) -> None:
    table = table_of(tmp_path, **{"changelog-file.prefix": "cl-", "changelog-file.format": "orc"})
    writer = RollingWriter(FileTarget(table, (), 0, 5, changelog=True))
    writer.add(rows_of(table, range(5)))
    (found,) = writer.close()
    assert found.file_name.startswith("cl-")
    assert found.file_name.endswith(".orc")
    assert (found.level, found.file_source) == (5, FileSource.APPEND)


def test_the_format_is_that_of_the_level(tmp_path: Path) -> None:
    table = table_of(tmp_path, **{"file.format.per.level": "0:avro,5:orc"})
    for level, ending in ((0, "avro"), (3, "parquet"), (5, "orc")):
        writer = RollingWriter(FileTarget(table, (), 0, level))
        writer.add(rows_of(table, range(3)))
        assert writer.close()[0].file_name.endswith(f".{ending}")


def test_without_rows_there_is_no_file(tmp_path: Path) -> None:
    assert RollingWriter(FileTarget(table_of(tmp_path), (), 0, 1)).close() == []


def test_whoever_gives_up_leaves_no_file(tmp_path: Path) -> None:
    table = table_of(tmp_path, target_file_size="4 kb", **{"file-index.bloom-filter.columns": "v",
                     "file-index.in-manifest-threshold": "1 b"})  # fmt: skip
    writer = RollingWriter(FileTarget(table, (), 0, 1))
    for start in range(0, 1500, 500):
        writer.add(rows_of(table, range(start, start + 500)))
    assert len(writer.files) > 1
    with pytest.raises(ZeroDivisionError):
        _fail(writer)
    assert list((tmp_path / "db.db" / "t" / "bucket-0").iterdir()) == []


def _fail(writer: RollingWriter) -> Any:
    try:
        return 1 // 0
    except BaseException:
        writer.abort()
        raise


def test_rows_of_append_tables_go_on_with_their_numbers(tmp_path: Path) -> None:
    table = native_table(tmp_path, COLUMNS)
    writer = RollingWriter(FileTarget(table, (), 0, 0), 40)
    writer.add(rows_table(table.schema, [{"k": 1, "v": "a"}, {"k": 2, "v": None}]))
    (found,) = writer.close()
    assert (found.min_sequence_number, found.max_sequence_number) == (40, 41)
    assert (found.min_key, found.delete_row_count) == (EMPTY_ROW, 0)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_file_that_is_given_up_half_written_is_gone(file_format: str, tmp_path: Path) -> None:
    table = table_of(tmp_path, **{"file.format": file_format})
    writer = RollingWriter(FileTarget(table, (), 0, 1))
    rows = [{"k": k, "v": f"{k:05}" * 300} for k in range(8000)]
    for start in range(3):
        writer.add(rows_table(table.schema, rows, start * 8000))
    assert writer.files == []
    with pytest.raises(ZeroDivisionError):
        _fail(writer)
    del writer
    gc.collect()
    assert list((tmp_path / "db.db" / "t" / "bucket-0").iterdir()) == []


def test_row_groups_are_smaller_where_compaction_asks_for_few_keys(tmp_path: Path) -> None:
    groups = []
    for number, options in enumerate(({}, {"deletion_vectors.enabled": "true"})):
        table = table_of(tmp_path / str(number), **options)
        writer = RollingWriter(FileTarget(table, (), 0, 5))
        keys = pa.array(range(600_000), pa.int32())
        rows = rows_of(table, range(1)).take([0] * 600_000).set_column(0, "k", keys)
        for start in range(0, 600_000, 50_000):
            writer.add(rows.slice(start, 50_000))
        (found,) = writer.close()
        metadata = pq.read_metadata(FileTarget(table, (), 0, 5).file(found.file_name).path)
        groups.append(metadata.num_row_groups)
    assert groups[1] >= 3 * groups[0]


def test_timestamps_that_orc_lacks_go_into_a_file_of_their_own(tmp_path: Path) -> None:
    options = {"bucket": "1", "file.format": "orc", "file.compression": "zlib",
               "file.suffix.include.compression": "true"}  # fmt: skip
    table = native_table(tmp_path, [("k", "INT"), ("t", "TIMESTAMP(6)")], keys=["k"],
                         options=options)  # fmt: skip
    writer = RollingWriter(FileTarget(table, (), 0, 5))
    writer._group_bytes = 1
    times = [0, 1, -1, 5, 2**62]
    for k, t in enumerate(times):
        writer.add(rows_table(table.schema, [{"k": k, "t": t}], k))
    files = writer.close()
    assert [file.file_name.partition(".")[2] for file in files] == ["zlib.orc", "zstd.parquet"]
    assert [file.row_count for file in files] == [2, 3]
    parts = [read_data_file(table, EMPTY_ROW, 0, file, table.schema.fields) for file in files]
    found = [value for part in parts for value in column_values(part.column("t"))]
    assert found == times
    written = write_bucket(table, EMPTY_ROW, 0, rows_table(table.schema, [{"k": 1, "t": -1}]),
                           new_name=data_file_names(table))  # fmt: skip
    assert [new_file.file_name.partition(".")[2] for new_file in written.new_files] == [
        "zstd.parquet"
    ]
