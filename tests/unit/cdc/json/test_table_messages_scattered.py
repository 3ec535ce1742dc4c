"""Messages with a column each become many batches of few cells, and no value is lost by it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.cdc.base import DataFormat, Decoded, RecordChunk, load_data_format
from ingestd.cdc.json import table_messages
from ingestd.cdc.json.table_messages import (
    FEW,
    MOST_IN_A_RECORD,
    batch_bounds,
    check_width,
    exceeds_cell_budget,
)
from ingestd.cdc.record_errors import RecordError

ROOT = Path(__file__).resolve().parents[3]
FORMATS = ["debezium-json", "json", "maxwell-json", "debezium-flat-json"]
MOST_BYTES = 64 << 20


def debezium(row: dict[str, int]) -> dict[str, object]:
    source = {"connector": "postgresql", "name": "s", "db": "d", "schema": "p", "table": "t"}
    position = {"lsn": 1000 + row["id"], "ts_ms": 1, "snapshot": "false"}
    return {"before": None, "after": row, "source": {**source, **position}, "op": "c"}


def maxwell(row: dict[str, int]) -> dict[str, object]:
    head = {"database": "d", "table": "t", "type": "insert", "ts": 1, "xid": 1}
    return {**head, "primary_key_columns": ["id"], "data": row}


def flat(row: dict[str, int]) -> dict[str, object]:
    return {**row, "__op": "c", "__table": "t", "__deleted": "false"}


FORMS: dict[str, Callable[[dict[str, int]], dict[str, object]]] = {
    "debezium-json": debezium,
    "json": dict,
    "maxwell-json": maxwell,
    "debezium-flat-json": flat,
}


def chunk_of(name: str, rows: list[dict[str, int]], first: int = 0) -> RecordChunk:
    values: list[bytes | None] = [json.dumps(FORMS[name](row)).encode() for row in rows]
    offsets = np.arange(first, first + len(rows), dtype=np.int64)
    keys: list[bytes | None] = [None] * len(rows)
    return RecordChunk("s.p.t", 0, offsets, offsets, keys, values, None)


def decoder(name: str) -> DataFormat:
    return load_data_format(name)


def scattered(name: str, count: int) -> RecordChunk:
    return chunk_of(name, [{"id": n, f"c{n:06}": n} for n in range(count)])


def rows_in(decoded: Decoded) -> dict[int, dict[str, int]]:
    """Cells that are there, by offset."""
    found: dict[int, dict[str, int]] = {}
    for batch in decoded.batches:
        for offset, row in zip(batch.offset.tolist(), batch.columns.to_pylist(), strict=True):
            assert offset not in found
            found[offset] = {name: value for name, value in row.items() if value is not None}
    return found


def cells_in(decoded: Decoded) -> int:
    return sum(batch.columns.num_rows * batch.columns.num_columns for batch in decoded.batches)


@pytest.mark.parametrize("name", FORMATS)
def test_columns_of_one_message_each_make_few_cells_for_each_message(name: str) -> None:
    chunk = scattered(name, 900)
    decoded = decoder(name).decode(chunk, {}, {})
    assert decoded.rejected == []
    assert rows_in(decoded) == {n: {"id": n, f"c{n:06}": n} for n in range(900)}
    offsets = [offset for batch in decoded.batches for offset in batch.offset.tolist()]
    assert offsets == sorted(offsets), "batches come in the order of their messages"
    # A part has the few columns that are never too many, and one that all have.
    assert cells_in(decoded) <= len(chunk.values) * (FEW + 1)


@pytest.mark.parametrize("name", FORMATS)
def test_a_wide_message_does_not_widen_those_after_it(name: str) -> None:
    wide = {"id": 0, **{f"w{n}": n for n in range(1200)}}
    narrow = [{"id": n, "v": n} for n in range(1, 1000)]
    reader = decoder(name)
    together = reader.decode(chunk_of(name, [wide, *narrow]), {}, {})
    assert rows_in(together) == dict(enumerate([wide, *narrow]))
    assert cells_in(together) < 50_000
    apart = reader.decode(chunk_of(name, [wide]), {}, {})
    after = reader.decode(chunk_of(name, narrow, 1), {}, {})
    assert rows_in(apart) | rows_in(after) == rows_in(together)
    assert len(after.batches) == 1


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_wrong_in_a_part_is_refused_at_its_place(name: str) -> None:
    chunk = scattered(name, 900)
    chunk.values[700] = b"{"
    decoded = decoder(name).decode(chunk, {}, {})
    assert [rejected_record.offset for rejected_record in decoded.rejected] == [700]
    assert sorted(rows_in(decoded)) == [n for n in range(900) if n != 700]


def test_wide_tables_whose_messages_are_full_stay_one_batch() -> None:
    rows = [{"id": n, **{f"c{i}": i for i in range(600)}} for n in range(100)]
    for _ in range(2):
        decoded = decoder("json").decode(chunk_of("json", rows), {}, {})
        assert [batch.columns.shape for batch in decoded.batches] == [(100, 601)]


def test_a_message_of_too_many_columns_is_refused_by_name() -> None:
    row = {"id": 0, **{f"c{n}": n for n in range(MOST_IN_A_RECORD)}}
    decoded = decoder("json").decode(chunk_of("json", [row]), {}, {})
    [refused] = decoded.rejected
    assert (refused.stage, refused.reason) == ("schema", "too-many-columns")
    assert (
        f"{MOST_IN_A_RECORD + 1} columns, which is more than {MOST_IN_A_RECORD}" in refused.message
    )
    with pytest.raises(RecordError):
        check_width(row)


def test_few_columns_are_never_taken_apart() -> None:
    values = [b"{}"] * FEW
    assert list(batch_bounds(values, lambda index: [str(index)])) == [(0, FEW)]
    assert not exceeds_cell_budget(FEW, values)
    assert list(batch_bounds([*values, b"{}"], lambda index: [str(index)])) == [
        (0, FEW),
        (FEW, FEW + 1),
    ]
    assert exceeds_cell_budget(FEW + 1, values)


@given(st.lists(st.tuples(st.integers(1, 60), st.sets(st.integers(0, 40))), min_size=1))
def test_parts_follow_each_other_and_none_but_a_single_message_breaks_the_bound(
    messages: list[tuple[int, set[int]]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_messages, "FEW", 3)
        follow_each_other(messages)


def follow_each_other(messages: list[tuple[int, set[int]]]) -> None:
    values = [b"x" * size for size, _ in messages]
    found = list(batch_bounds(values, lambda place: [str(name) for name in messages[place][1]]))
    assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])]
    assert found[-1][1] == len(messages)
    for start, stop in found:
        names = set().union(*(brought for _, brought in messages[start:stop]))
        size = sum(size for size, _ in messages[start:stop])
        few = len(names) <= table_messages.FEW
        assert few or stop == start + 1 or len(names) * (stop - start) <= size


@pytest.mark.parametrize("name", ["debezium-json", "json"])
def test_five_thousand_messages_with_a_column_each_take_little_memory(name: str) -> None:
    script = (
        "import resource\n"
        "from tests.unit.cdc.json.test_table_messages_scattered import decoder, scattered\n"
        "now = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10\n"
        f"chunk, reader = scattered({name!r}, 5000), decoder({name!r})\n"
        "before = now()\n"
        "decoded = reader.decode(chunk, {}, {})\n"
        "assert sum(len(one.offset) for one in decoded.batches) == 5000\n"
        "print(now() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST_BYTES
