"""Merging in columns against merging row by row, over files cut anywhere."""

from random import Random
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.arrow import column_of, column_values
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from tests.property.merge_model import merged
from tests.support.examples import examples
from tests.support.merge_cases import MergeCase, random_case
from tests.support.native_tables import native_table, put

SEEDS = st.integers(0, 2**32)


def _table(case: MergeCase) -> FileStoreTable:
    return native_table("/w", case.columns, keys=["k"], options=case.options, io=MemoryFileIO())


def _read(table: FileStoreTable) -> list[dict[str, Any]]:
    found = read_table(table)
    cells = zip(*(column_values(column) for column in found.columns), strict=True)
    return [dict(zip(found.column_names, row, strict=True)) for row in cells]


def _as_read(table: FileStoreTable, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the model with their cells as Arrow gives them back."""
    columns = [
        column_values(column_of([row[field.name] for row in rows], field.type))
        for field in table.schema.fields
    ]
    names = table.schema.field_names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@settings(max_examples=examples(40), deadline=None)
@given(SEEDS)
def test_files_read_as_their_rows_merge_one_by_one(seed: int) -> None:
    case = random_case(Random(seed))
    table = _table(case)
    for batch in case.batches:
        put(table, batch)
    expected = merged(case.batches, table.schema, table.merge_rules)
    assert case.settled(_read(table)) == case.settled(_as_read(table, expected))


def _depends_on_cuts(case: MergeCase) -> bool:
    """Whether merging in parts may give something else, by definition."""
    options, types = case.options, [t for _, t in case.columns]
    if "sequence.field" in options and "merge-engine" in options:
        # What a file merges takes the place of its newest row in the order.
        return True
    if any(name.endswith(("count-limit", "sequence-group")) for name in options):
        return True
    rounds = any(t in ("FLOAT", "DOUBLE") or str(t).startswith("DECIMAL") for t in types)
    return rounds or "merge_map_with_keytime" in options.values()


@settings(max_examples=examples(25), deadline=None)
@given(SEEDS, st.lists(st.integers(0, 40), max_size=4))
def test_where_files_are_cut_makes_no_difference_to_inserts(seed: int, cuts: list[int]) -> None:
    case = random_case(Random(seed))
    assume(not _depends_on_cuts(case))
    rows = [{**row, "_kind": 0} for batch in case.batches for row in batch]
    ends = sorted(cut % (len(rows) + 1) for cut in cuts)
    parts = [rows[a:b] for a, b in zip([0, *ends], [*ends, len(rows)], strict=True) if a < b]
    whole, cut = _table(case), _table(case)
    put(whole, rows)
    for part in parts:
        put(cut, part)
    assert case.settled(_read(cut)) == case.settled(_read(whole))
