"""Damaged files end in the right rows or in an error that names a file; nothing else.

A sample of the damages with fixed seeds, each met by one way to read; all by all with
INGESTD_LONG=1.
"""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from tests.property.damage import READS, REFUSED, RIGHT, WRONG, damages, files_below, verdict
from tests.support.java_fixtures import unpack
from tests.support.native_tables import native_table, put

LONG = bool(os.environ.get("INGESTD_LONG"))
COLUMNS: list[tuple[str, Any]] = [
    ("p", "STRING"), ("id", "INT"), ("v", "STRING"), ("n", "DECIMAL(12, 2)"), ("d", "DOUBLE"),
    ("a", {"type": "ARRAY", "element": "INT"}),
]  # fmt: skip


def _keyed(file_format: str) -> dict[str, bytes]:
    options = {
        "file.format": file_format, "dynamic-bucket.target-row-num": "16",
        "file-index.bloom-filter.columns": "v", "file-index.in-manifest-threshold": "1 b",
    }  # fmt: skip
    io = MemoryFileIO()
    table = native_table(
        "/w", COLUMNS, keys=["p", "id"], partitions=["p"], options=options, io=io
    )  # fmt: skip
    put(table, [{"p": "ab"[n % 2], "id": n, "v": f"v{n % 5}", "a": [n, None]} for n in range(20)])
    newer: list[dict[str, Any]] = [{"p": "ab"[n % 2], "id": n, "v": "w"} for n in range(5)]
    put(table, [*newer, {"p": "a", "id": 8, "_kind": 3}])
    return dict(io.files)


def _appended(file_format: str) -> dict[str, bytes]:
    options = {"file.format": file_format, "file-index.bitmap.columns": "v"}
    io = MemoryFileIO()
    table = native_table("/w", COLUMNS[1:], options=options, io=io)
    for _ in range(2):
        put(table, [{"id": n, "v": f"v{n % 5}" if n % 7 else None, "d": n / 3} for n in range(30)])
    return dict(io.files)


OWN: dict[str, Callable[[], dict[str, bytes]]] = {
    "keyed, Parquet": lambda: _keyed("parquet"),
    "keyed, Avro": lambda: _keyed("avro"),
    "append, Parquet": lambda: _appended("parquet"),
    "append, Avro": lambda: _appended("avro"),
    "append, ORC": lambda: _appended("orc"),
}
JAVA = {
    "dv_pk": "k = 5", "dv_append": "c0 = 5", "index_bitmap": "s = 'red'",
    "index_bloom_sidecar": "s = 'red'", "evolution_pk_parquet": "c = 4",
    "types_append_avro": "id = 1", "changelog_input": "k = 5", "types_pk_orc": "id = 1",
}  # fmt: skip
"""Tables of Java's, and a condition for each."""


def _judged(
    files: dict[str, bytes], condition: str, seed: int, share: float
) -> dict[str, list[str]]:
    """What came out of the damages, by verdict."""
    wanted = {read: read(files, condition) for read in READS}
    found: dict[str, list[str]] = {}
    for number, damage in enumerate(damages(files, Random(seed), 1.0 if LONG else share)):
        for read in READS if LONG else (READS[number % len(READS)],):
            said = verdict(read, files, condition, damage, wanted[read])
            found.setdefault(said, []).append(f"{damage.path}: {damage.what}, {read.__name__}")
    return found


@pytest.mark.timeout(0 if LONG else 900)
@pytest.mark.parametrize("name", OWN)
def test_tables_of_our_own_are_read_right_or_refused(name: str) -> None:
    found = _judged(OWN[name](), "v = 'v1'", 11, 0.002)
    assert found.pop(RIGHT)
    assert found.pop(REFUSED)
    # ORC has no checksums.
    unsure = [one for one in found.pop(WRONG, []) if ".orc:" not in one]
    assert unsure == []
    assert found == {}


@pytest.mark.timeout(0 if LONG else 900)
@pytest.mark.parametrize("name", JAVA)
def test_tables_of_java_end_in_rows_or_in_an_error_that_names_a_file(
    name: str, tmp_path: Path
) -> None:
    files = files_below(unpack(name, tmp_path).warehouse)
    found = _judged(files, JAVA[name], 12, 0.0004)
    assert found.pop(RIGHT)
    assert found.pop(REFUSED)
    # Java writes checksums into Parquet pages and deletion vectors only.
    wrong = [one for one in found.pop(WRONG, []) if ".orc:" not in one]
    assert len(wrong) <= 3 or LONG, wrong
    assert found == {}
