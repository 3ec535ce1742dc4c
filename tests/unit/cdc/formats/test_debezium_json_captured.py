"""Change batches of a captured stream, folded by key, are the rows the database ended with."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import ChangeBatch, Decoded, SourceTable, load_data_format
from ingestd.paimon.spec.data_types import encode_type, parse_type
from tests.support import captured_chunks, corpus, state
from tests.support.change_fold import Fold
from tests.support.declared import declared_types

DATABASE = "shopdb"


def decode_all(mode: corpus.Mode, size: int, *, declare: bool) -> tuple[dict[str, Fold], Decoded]:
    data_format = load_data_format("debezium-json")
    declared = {}
    if declare:
        for name in state.database_tables():
            schema, table = name.split(".")
            types = {column: parse_type(t) for column, t in declared_types(name).items()}
            declared[SourceTable(DATABASE, schema, table)] = types
    folds: dict[str, Fold] = defaultdict(Fold)
    total = Decoded([], [], [], 0)
    for chunk in captured_chunks.shop(mode, size):
        decoded = data_format.decode(chunk, {}, declared)
        by_table: dict[str, list[ChangeBatch]] = defaultdict(list)
        for batch in decoded.batches:
            by_table[f"{batch.source.schema}.{batch.source.table}"].append(batch)
        for table, batches in by_table.items():
            folds[table].add(batches)
        total.rejected.extend(decoded.rejected)
        for truncate in decoded.truncates:
            fold = folds[f"{truncate.source.schema}.{truncate.source.table}"]
            fold.emptied_at = truncate.position or -1
            total.truncates.append(truncate)
    return folds, total


KEYED = [name for name, table in state.database_tables().items() if table.key]
VARBIT = "shop.types_all [3] c_varbit "
"""Bare messages do not tell that these bytes are bits, so they stay in the connector's order."""


@pytest.mark.parametrize("size", [100_000, 7])
def test_messages_with_schema_give_the_rows_of_the_database(size: int) -> None:
    folds, total = decode_all("json-schema", size, declare=False)
    assert total.rejected == []
    problems = []
    for table in KEYED:
        types = {name: encode_type(t) for name, t in folds[table].types.items()}
        problems += state.compare(table, folds[table].lines(), types)
    assert problems == []


@pytest.mark.parametrize("size", [100_000, 7])
def test_declared_types_make_bare_messages_equal_too(size: int) -> None:
    folds, total = decode_all("json", size, declare=True)
    assert total.rejected == []
    problems = []
    for table in KEYED:
        types = {name: encode_type(t) for name, t in folds[table].types.items()}
        problems += state.compare(table, folds[table].lines(), types)
    assert [problem for problem in problems if not problem.startswith(VARBIT)] == []


@pytest.mark.parametrize("size", [100_000, 7])
def test_bare_messages_keep_every_value_as_it_came(size: int) -> None:
    folds, total = decode_all("json", size, declare=False)
    assert total.rejected == []
    wanted = corpus.folded("json")
    problems = []
    for table in KEYED:
        key = state.database_tables()[table].key
        rows = folds[table].lines()
        problems += state.compare_as_it_came(table, key, wanted[table], rows)
    assert problems == []


@pytest.mark.parametrize("mode", corpus.MODES)
def test_truncate_names_its_table_and_position(mode: corpus.Mode) -> None:
    _, total = decode_all(mode, 100_000, declare=False)
    [truncate] = total.truncates
    assert truncate.source == SourceTable(DATABASE, "shop", "cart")
    assert truncate.position is not None


@pytest.mark.parametrize("mode", corpus.MODES)
def test_streamed_changes_without_key_differ_in_position(mode: corpus.Mode) -> None:
    folds, _ = decode_all(mode, 100_000, declare=False)
    rows: dict[int, Any] = {}
    batches = [batch for chunk in folds["shop.audit_log"].chunks for batch in chunk]
    for batch in batches:
        streamed = np.flatnonzero(~batch.snapshot_row)
        assert (batch.position[streamed] > 0).all()
        assert batch.primary_keys == ()
        cells = batch.columns.to_pylist()
        for index in streamed:
            # Only a connector that was killed sends a position twice, with the same row.
            assert rows.setdefault(int(batch.position[index]), cells[index]) == cells[index]
    assert len(rows) > 10
