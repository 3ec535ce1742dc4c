"""Columns of any name that files may have, in keys, partitions and statistics, read by Java."""

from pathlib import Path

import pytest

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import native_table, put
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

KEY, PART = 'i"d', 'p"a\\r\nt'
NAMES = ['a"b', "c\\d", "e\nf", "\x00g", "h\x7f", "m.n", "p q", "(z)", "a,b", "s:t", " u", "é"]


@pytest.mark.parametrize("bucket", ["1", "-1"])
@pytest.mark.parametrize(("file_format", "more"), [("parquet", ["`k`"]), ("orc", [])])
def test_java_finds_columns_of_any_name(
    tmp_path: Path, oracle: Oracle, file_format: str, more: list[str], bucket: str
) -> None:
    names = [*NAMES, *more]
    columns = [(KEY, "INT NOT NULL"), (PART, "STRING NOT NULL"), *((n, "STRING") for n in names)]
    options = {"file.format": file_format, "bucket": bucket}
    table = native_table(tmp_path, columns, keys=[PART, KEY], partitions=[PART], options=options)
    for count, mark in ((3, "old"), (2, "new")):
        rows = [{KEY: n, PART: "p", **{m: f"{m}{n}{mark}" for m in names}} for n in range(count)]
        put(table, rows)
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert len(lines) == 3
    assert lines == oracle.read_lines(tmp_path, "db", "t")
    for name in names:
        found = oracle.read(tmp_path, "db", "t", "--filter", f"{name}={name}2old")
        assert [row[KEY] for row in found] == [2]
    assert oracle.fsck(tmp_path, "db", "t", "--all", "--orphans") == []
    assert verify(table) == []
