"""Change batches of captured Avro streams, folded by key, are the rows the database ended with."""

import re
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import ChangeBatch, Decoded, FormatSettings, RecordChunk, load_data_format
from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaId
from ingestd.paimon.spec.data_types import encode_type
from tests.support import captured_avro, captured_chunks, corpus, state
from tests.support.change_fold import Fold

KEYED = [name for name, table in state.database_tables().items() if table.key]


class SavedRegistry:
    """The saved registry without a server."""

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        return ()

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        text, references = captured_avro.schema_texts(int(schema_id))
        inner = tuple(RegisteredSchema("AVRO", reference) for reference in references)
        return RegisteredSchema("AVRO", text, inner)


def decode_all(mode: corpus.Mode, size: int) -> tuple[dict[str, Fold], Decoded]:
    data_format = load_data_format("debezium-avro", FormatSettings(schemas=SavedRegistry()))
    folds: dict[str, Fold] = defaultdict(Fold)
    total = Decoded([], [], [], 0)
    for chunk in captured_chunks.shop(mode, size):
        decoded = data_format.decode(chunk, {}, {})
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


def as_named_in_the_database(table: str, row: dict[str, Any]) -> dict[str, Any]:
    names = {re.sub(r"\W", "_", n, flags=re.A): n for n in state.database_tables()[table].types}
    return {names.get(name, name): value for name, value in row.items()}


@pytest.mark.parametrize(("mode", "size"), [("avro", 100_000), ("avro-inline", 40)])
def test_captured_messages_give_the_rows_of_the_database(mode: corpus.Mode, size: int) -> None:
    folds, total = decode_all(mode, size)
    assert total.rejected == []
    problems = []
    for table in KEYED:
        types = {name: encode_type(t) for name, t in folds[table].types.items()}
        rows = [as_named_in_the_database(table, row) for row in folds[table].lines()]
        problems += state.compare(table, rows, as_named_in_the_database(table, types))
    assert problems == []


@cache
def _whole() -> list[RecordChunk]:
    return captured_chunks.shop("avro", 100_000)


def test_every_record_is_counted_once() -> None:
    data_format = load_data_format("debezium-avro", FormatSettings(schemas=SavedRegistry()))
    for chunk in _whole():
        decoded = data_format.decode(chunk, {}, {})
        offsets = np.concatenate([[], *(batch.offset for batch in decoded.batches)])
        rows = len(np.unique(offsets))
        assert rows + decoded.control + len(decoded.truncates) == len(chunk.values)
