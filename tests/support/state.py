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
from tests.support.corpus import SHOP

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table as the database itself had it at the end."""

    name: str
    key: tuple[str, ...]
    types: Mapping[str, str]
    rows: Sequence[Row]


@cache
def database_tables() -> dict[str, DatabaseTable]:
    """All tables of the captured database by ``schema.table``."""
    with lzma.open(SHOP / "state.json.xz", "rt", encoding="utf-8") as file:
        document = json.load(file)
    return {
        name: DatabaseTable(
            name,
            tuple(table["key"]),
            {column["name"]: column["type"] for column in table["schema"]},
            table["rows"],
        )
        for name, table in document.items()
    }


@cache
def losses() -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """Cells that no reader of the stream can know, by table, key as JSON text and column."""
    listed = json.loads((SHOP / "losses.json").read_text(encoding="utf-8"))
    return {(cell["table"], json.dumps(cell["key"]), cell["column"]): cell for cell in listed}


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
    wanted = database_tables()[table]
    if not wanted.key:
        return _compare_bag(wanted, rows, types, repeats or Counter())
    return _compare_keyed(wanted, rows, types)


def _compare_keyed(
    wanted: DatabaseTable, rows: Sequence[Row], types: Mapping[str, Any]
) -> list[str]:
    expected = {_key(row, wanted.key): row for row in wanted.rows}
    found = {_key(row, wanted.key): row for row in rows}
    problems = [f"{wanted.name}: {n} rows of key {key}" for key, n in _doubles(rows, wanted.key)]
    problems += [f"{wanted.name} {key}: missing" for key in sorted(expected.keys() - found.keys())]
    problems += [
        f"{wanted.name} {key}: left over" for key in sorted(found.keys() - expected.keys())
    ]
    for key in sorted(expected.keys() & found.keys()):
        for column, database_type in wanted.types.items():
            loss = losses().get((wanted.name, key, column))
            cell = expected[key][column], found[key].get(column)
            if not _passes(database_type, *cell, types.get(column), loss):
                problems.append(f"{wanted.name} {key} {column} {database_type}: {_show(*cell)}")
    return problems


def _compare_bag(
    wanted: DatabaseTable,
    rows: Sequence[Row],
    types: Mapping[str, Any],
    repeats: Counter[str],
) -> list[str]:
    def matches(expected: Row, found: Row) -> bool:
        return all(
            _passes(kind, expected[name], found.get(name), types.get(name), None)
            for name, kind in wanted.types.items()
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


def _passes(
    database_type: str, wanted: Any, got: Any, paimon_type: Any, loss: Mapping[str, Any] | None
) -> bool:
    if _same(database_type, wanted, paimon_type, got):
        return True
    return loss is not None and _same(database_type, loss["in_stream"], paimon_type, got)


def _same(database_type: str, wanted: Any, paimon_type: Any, got: Any) -> bool:
    try:
        return canonical.same(database_type, wanted, paimon_type, got)
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError):
        return False


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
