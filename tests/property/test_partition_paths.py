"""Whatever a partition is called, its files lie below the table."""

import posixpath

from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.paths import TablePaths, escape, partition_path
from tests.support.typed_cells import TEXTS, cells, scalar_types

PATHS = TablePaths("/w/db.db/t")
HOSTILE = st.text(st.sampled_from("./\\%=: \x00a~"), max_size=8) | TEXTS


@st.composite
def partitions(draw: st.DrawFn) -> tuple[list[str], list[DataType], list[object]]:
    keys = draw(st.lists(HOSTILE.filter(str.strip), min_size=1, max_size=3, unique=True))
    types = [draw(scalar_types() | st.just(DataType("STRING"))) for _ in keys]
    return keys, types, [
        draw(HOSTILE if t.root == "STRING" else cells(t)) for t in types
    ]  # fmt: skip


@given(partitions(), st.booleans())
def test_partitions_never_leave_the_table(
    partition: tuple[list[str], list[DataType], list[object]], legacy: bool
) -> None:
    keys, types, values = partition
    try:
        path = partition_path(keys, types, values, "__DEFAULT_PARTITION__", legacy)
    except UnsupportedError:
        return
    levels = path.split("/")
    assert len(levels) == len(keys) + 1
    assert levels[-1] == ""
    for key, level in zip(keys, levels, strict=False):
        assert level.startswith(escape(key) + "=")
        assert len(level) > len(escape(key)) + 1
    full = PATHS.data_file(path, 0, "data-0.parquet")
    assert posixpath.normpath(full) == full
    assert full.startswith("/w/db.db/t/")


@given(HOSTILE)
def test_escaped_text_is_one_name_and_can_be_undone(text: str) -> None:
    escaped = escape(text)
    assert not set(escaped) & set("/\\\x00=:")
    parts = escaped.split("%")
    undone = parts[0] + "".join(chr(int(part[:2], 16)) + part[2:] for part in parts[1:])
    assert undone == text
