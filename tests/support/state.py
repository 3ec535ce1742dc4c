"""Comparison of tables with what the database itself ended in, cell by cell.

A cell that the stream cannot carry is listed in the corpus as a loss and may hold the database's
value or the stream's. Nothing else may differ, and no row may be missing or left over.
"""

import json
import lzma
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import canonical
from tests.support.corpus import LEFT_OUT, SHOP

Row = Mapping[str, Any]
Lost = tuple[str, str, str]
Same = Callable[[str, Any, Any, Any], bool]
"""Of the database's type, its value, the Paimon type and the cell."""


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table as the database itself had it at the end."""

    name: str
    key: tuple[str, ...]
    types: Mapping[str, str]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A moment of a capture: what the database held, and what no reader of the stream can know.

    ``losses`` are cells by table, key as JSON text and column; ``ends`` the end offsets by mode,
    topic and partition.
    """

    name: str
    tables: Mapping[str, DatabaseTable]
    losses: Mapping[Lost, Mapping[str, Any]]
    ends: Mapping[str, Mapping[str, Mapping[str, int]]]


@cache
def checkpoints(home: Path) -> tuple[Checkpoint, ...]:
    """The moments of a capture at which its database was read, the last one last."""
    with lzma.open(home / "checkpoints.json.xz", "rt", encoding="utf-8") as file:
        document = json.load(file)
    return tuple(
        Checkpoint(
            one["name"],
            {name: _table(name, table) for name, table in one["state"].items()},
            {(c["table"], json.dumps(c["key"]), c["column"]): c for c in one["losses"]},
            one["end_offsets"],
        )
        for one in document
    )


def _table(name: str, document: Mapping[str, Any]) -> DatabaseTable:
    types = {column["name"]: column["type"] for column in document["schema"]}
    return DatabaseTable(name, tuple(document["key"]), types, document["rows"])


def database_tables() -> Mapping[str, DatabaseTable]:
    """All tables of the captured PostgreSQL by ``schema.table``, as they were at the end."""
    return checkpoints(SHOP)[-1].tables


def losses() -> Mapping[Lost, Mapping[str, Any]]:
    """Cells of these that no reader of the stream can know."""
    return checkpoints(SHOP)[-1].losses


def column_types(warehouse: Path | str, database: str, table: str) -> dict[str, Any]:
    """Column -> type document, from the newest schema file; independent of the product's code."""
    folder = Path(warehouse) / f"{database}.db" / table / "schema"
    newest = max(folder.glob("schema-*"), key=lambda path: int(path.name.removeprefix("schema-")))
    return {field["name"]: field["type"] for field in json.loads(newest.read_text())["fields"]}


def compare(
    table: str,
    rows: Sequence[Row],
    types: Mapping[str, Any],
    *,
    repeats: Counter[str] | None = None,
) -> list[str]:
    """Differences between a table's rows and the database, as sentences; empty when all is well.

    ``repeats`` are rows of a table without a key that the stream holds more than once
    (``corpus.repeated_inserts``); they may, but need not, be there as often. A column that the
    table lacks counts as null in every row: a stream without schema never tells of such a column.
    """
    lost = losses()
    return differences(database_tables()[table], rows, types, repeats=repeats, lost=lost)


def differences(
    wanted: DatabaseTable,
    rows: Sequence[Row],
    types: Mapping[str, Any],
    *,
    repeats: Counter[str] | None = None,
    lost: Mapping[Lost, Mapping[str, Any]] | None = None,
    same: Same = canonical.same,
) -> list[str]:
    """As `compare`, for a table of any database, other losses and another way to compare cells."""
    comparison = _Comparison(wanted, types, lost or {}, same)
    if not wanted.key:
        return _compare_bag(comparison, rows, repeats or Counter())
    return _compare_keyed(comparison, rows)


@dataclass(frozen=True, slots=True)
class _Comparison:
    wanted: DatabaseTable
    types: Mapping[str, Any]
    lost: Mapping[Lost, Mapping[str, Any]]
    same: Same

    def passes(self, column: str, wanted: Any, got: Any, key: str | None = None) -> bool:
        if self._equal(column, wanted, got):
            return True
        loss = None if key is None else self.lost.get((self.wanted.name, key, column))
        # A value that the stream left out is that of an earlier row, also if its key was another.
        if loss is None or loss["in_stream"] in LEFT_OUT:
            return False
        return self._equal(column, loss["in_stream"], got)

    def _equal(self, column: str, wanted: Any, got: Any) -> bool:
        try:
            return self.same(self.wanted.types[column], wanted, self.types.get(column), got)
        except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError):
            return False


def _compare_keyed(comparison: _Comparison, rows: Sequence[Row]) -> list[str]:
    wanted = comparison.wanted
    expected = {_key(row, wanted.key): row for row in wanted.rows}
    found = {_key(row, wanted.key): row for row in rows}
    problems = [f"{wanted.name}: {n} rows of key {key}" for key, n in _doubles(rows, wanted.key)]
    problems += [f"{wanted.name} {key}: missing" for key in sorted(expected.keys() - found.keys())]
    problems += [
        f"{wanted.name} {key}: left over" for key in sorted(found.keys() - expected.keys())
    ]
    for key in sorted(expected.keys() & found.keys()):
        for column, database_type in wanted.types.items():
            cell = expected[key][column], found[key].get(column)
            if not comparison.passes(column, *cell, key):
                problems.append(f"{wanted.name} {key} {column} {database_type}: {_show(*cell)}")
    return problems


def _compare_bag(comparison: _Comparison, rows: Sequence[Row], repeats: Counter[str]) -> list[str]:
    wanted = comparison.wanted

    def matches(expected: Row, found: Row) -> bool:
        return all(
            comparison.passes(name, expected[name], found.get(name)) for name in wanted.types
        )

    left = list(rows)
    problems = [
        f"{wanted.name} {json.dumps(row)}: missing"
        for row in wanted.rows
        if not _take(left, row, matches)
    ]
    for text, count in repeats.items():
        for _ in range(count):
            _take(left, json.loads(text), matches)
    return problems + [f"{wanted.name} {json.dumps(row)}: left over" for row in left]


def compare_as_it_came(
    table: str, key: Sequence[str], wanted: Mapping[str, Row], rows: Sequence[Row]
) -> list[str]:
    """Differences between a table and the wire values that its stream ends in.

    For messages without a schema and no declared types: ``wanted`` is ``corpus.folded(..)[table]``.
    """
    found = {_key(row, key): row for row in rows}
    problems = [f"{table}: {n} rows of key {k}" for k, n in _doubles(rows, key)]
    problems += [f"{table} {k}: missing" for k in sorted(wanted.keys() - found.keys())]
    problems += [f"{table} {k}: left over" for k in sorted(found.keys() - wanted.keys())]
    for k in sorted(wanted.keys() & found.keys()):
        for column, value in wanted[k].items():
            got = found[k].get(column)
            if not _as_it_came(value, got):
                problems.append(f"{table} {k} {column}: {_show(value, got)}")
    return problems


def _as_it_came(wanted: Any, got: Any) -> bool:
    if type(wanted) is type(got) and wanted == got:
        return True
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return isinstance(got, int | float | str) and str(float(wanted)) == _float_text(got)
    if isinstance(wanted, dict | list | bool) and isinstance(got, str):
        return bool(json.loads(got) == wanted)
    return False


def _float_text(got: object) -> str:
    try:
        return str(float(got))  # type: ignore[arg-type]  # the caller has checked
    except ValueError:
        return ""


def _take(left: list[Row], row: Row, matches: Callable[[Row, Row], bool]) -> bool:
    for index, candidate in enumerate(left):
        if matches(row, candidate):
            del left[index]
            return True
    return False


def _doubles(rows: Sequence[Row], key: Sequence[str]) -> list[tuple[str, int]]:
    counts = Counter(_key(row, key) for row in rows)
    return [(text, count) for text, count in counts.items() if count > 1]


def _key(row: Row, columns: Sequence[str]) -> str:
    return json.dumps([row.get(name) for name in columns])


def _show(wanted: object, got: object) -> str:
    def short(value: object) -> str:
        text = repr(value)
        return text if len(text) < 120 else text[:117] + "..."

    return f"wanted {short(wanted)}, got {short(got)}"
