"""SQL expressions run on a few rows, for tests to look at."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ingestd.ingest.computed.expressions.cells import Frame
from ingestd.ingest.computed.expressions.expression import Outcome, read_expression, run_expression
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import parse_type

FAILED = "(failed)"
NOW_MS = 1_700_000_000_000
Columns = Mapping[str, tuple[str, Sequence[Any]]]
"""Columns by name: Paimon type and values."""


def outcome(sql: str, columns: Columns) -> Outcome | None:
    """What an expression gives, with its type."""
    types = {name: parse_type(text) for name, (text, _) in columns.items()}
    arrays = {
        name: pa.array(values, to_arrow_type(types[name])) for name, (_, values) in columns.items()
    }
    rows = len(next(iter(arrays.values()))) if arrays else 1
    return run_expression(read_expression(sql), types, Frame(arrays, rows, NOW_MS))


def values(sql: str, columns: Columns) -> list[Any]:
    """The values that an expression gives, `FAILED` for rows that it fails for."""
    found = outcome(sql, columns)
    assert found is not None
    pairs = zip(found.values.to_pylist(), found.failed.tolist(), strict=True)
    return [FAILED if failed else value for value, failed in pairs]


def type_of(sql: str, columns: Columns) -> str:
    """The type that an expression gives."""
    found = outcome(sql, columns)
    return "NULL" if found is None else str(found.type)
