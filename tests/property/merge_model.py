"""Merge engines as the specification tells them: one row after the other into a dictionary.

Slow and plain, on Python values; what the columns of ``ingestd.paimon.merge`` must agree with.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
from pyroaring import BitMap

from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.merge_rules import FieldFunction, MergeRules
from ingestd.paimon.spec.roaring64 import decode_roaring64, encode_roaring64
from ingestd.paimon.spec.table_schema import TableSchema

Row = dict[str, Any]
"""Cells by column, with ``_kind``."""
_NUMBERS: Mapping[str, Any] = {
    "TINYINT": np.int8, "SMALLINT": np.int16, "INT": np.int32, "BIGINT": np.int64,
    "FLOAT": np.float32, "DOUBLE": np.float64,
}  # fmt: skip
_WIDE = Context(prec=80)


def merged(batches: Sequence[Sequence[Row]], schema: TableSchema, rules: MergeRules) -> list[Row]:
    """What a reader finds after some batches, each of which is a file."""
    files = [_fold(_kept(batch, rules), schema, rules) for batch in batches]
    rows = _fold([row for file in files for row in file], schema, rules)
    return [row for row in rows if row["_kind"] in (0, 2)]


def _kept(batch: Sequence[Row], rules: MergeRules) -> list[Row]:
    gone = (1, 3) if rules.ignore_delete else (1,) if rules.ignore_update_before else ()
    return [row for row in batch if row["_kind"] not in gone]


def _fold(rows: Sequence[Row], schema: TableSchema, rules: MergeRules) -> list[Row]:
    """One row of each key."""
    by_key: dict[Any, list[Row]] = {}
    for row in rows:
        by_key.setdefault(row["k"], []).append(row)
    found = []
    for key in sorted(by_key):
        own = sorted(by_key[key], key=lambda row: sequence(row, rules.sequence_fields))
        found.append(own[0] if len(own) == 1 else _ENGINES[rules.engine](own, schema, rules))
    return found


def sequence(row: Row, names: Sequence[str]) -> tuple[tuple[bool, Any], ...]:
    """Cells that compare: null is the least, and text goes by its bytes."""
    return tuple((row[name] is not None, _plain(row[name])) for name in names)


def _plain(cell: Any) -> Any:
    if isinstance(cell, float):
        # The zero with a minus is the smaller one.
        return cell, math.copysign(1, cell)
    return cell.encode() if isinstance(cell, str) else 0 if cell is None else cell


def _or_null(cells: tuple[tuple[bool, Any], ...]) -> bool:
    return not any(known for known, _ in cells)


def _deduplicate(rows: Sequence[Row], schema: TableSchema, rules: MergeRules) -> Row:
    return rows[-1]


def _aggregation(rows: Sequence[Row], schema: TableSchema, rules: MergeRules) -> Row:
    cells: Row = dict.fromkeys(schema.field_names)
    folds = {name: _fold_of(name, schema, rules) for name in schema.field_names}
    for row in rows:
        if rules.remove_on_delete and row["_kind"] == 3:
            cells = {**row}
            continue
        for name, fold in folds.items():
            step = fold.retract if row["_kind"] in (1, 3) else fold.add
            cells[name] = step(cells[name], row[name])
    removed = rules.remove_on_delete and rows[-1]["_kind"] == 3
    return {**cells, "_kind": 3 if removed else 0}


def _partial_update(rows: Sequence[Row], schema: TableSchema, rules: MergeRules) -> Row:
    update = _Update(schema, rules)
    for row in rows:
        update.take(row)
    return {**update.cells, "_kind": 3 if update.removed or not update.inserted else 0}


class _Update:
    def __init__(self, schema: TableSchema, rules: MergeRules) -> None:
        self.rules, self.names = rules, schema.field_names
        self.cells: Row = dict.fromkeys(schema.field_names)
        self.removed = self.inserted = self.begun = False
        self.folds = {name: _fold_of(name, schema, rules) for name in rules.functions}

    def take(self, row: Row) -> None:
        self.removed = False
        retracts = row["_kind"] in (1, 3)
        if retracts and not self.begun:
            self.cells = {**row}
        self.begun, self.inserted = True, self.inserted or not retracts
        if retracts and self.rules.remove_on_delete and row["_kind"] == 3:
            self.cells, self.removed = {**row}, True
        if not retracts or not (self.rules.remove_on_delete or self.rules.ignore_delete):
            self._fill(row, retracts)

    def _fill(self, row: Row, retracts: bool) -> None:
        before = dict(self.cells)
        grouped: set[str] = set()
        for group in self.rules.groups:
            grouped |= {*group.sequence, *group.columns}
            mine = sequence(row, group.sequence)
            if _or_null(mine):
                continue
            newer = mine >= sequence(before, group.sequence)
            if newer and row["_kind"] == 3 and group.removes:
                self.cells, self.removed = {**row}, True
                return
            self._group(row, group.columns, newer, retracts)
            if newer:
                self.cells |= {name: row[name] for name in group.sequence}
        if not retracts:
            free = [name for name in self.names if name not in grouped]
            self.cells |= {name: row[name] for name in free if row[name] is not None}

    def _group(self, row: Row, columns: Sequence[str], newer: bool, retracts: bool) -> None:
        for name in columns:
            fold, now = self.folds.get(name), self.cells[name]
            if fold is None:
                if newer:
                    self.cells[name] = None if retracts else row[name]
            elif retracts:
                self.cells[name] = fold.retract(now, row[name])
            else:
                self.cells[name] = (fold.add if newer else fold.add_older)(now, row[name])


_ENGINES: Mapping[str, Callable[[Sequence[Row], TableSchema, MergeRules], Row]] = {
    "deduplicate": _deduplicate,
    "aggregation": _aggregation,
    "partial-update": _partial_update,
}


def _fold_of(name: str, schema: TableSchema, rules: MergeRules) -> "_Fold":
    function = rules.functions.get(name, FieldFunction("primary-key"))
    return _Fold(function, schema.field(name).type)


_EXTREMES: Mapping[str, Any] = {"max": max, "bool_or": max, "min": min, "bool_and": min}


def _united(now: bytes, cell: bytes) -> bytes:
    bitmap = BitMap.deserialize(now) | BitMap.deserialize(cell)
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    return data


def _united64(now: bytes, cell: bytes) -> bytes:
    bitmap = decode_roaring64(now)
    bitmap.add(decode_roaring64(cell))
    return encode_roaring64(bitmap)


_UNIONS = {"rbm32": _united, "rbm64": _united64}


class _Fold:
    """One aggregate function of one column of one key."""

    def __init__(self, function: FieldFunction, t: DataType) -> None:
        self.function, self.type, self.begun = function, t, False

    def add(self, now: Any, cell: Any) -> Any:
        name = self.function.name
        if name in ("last_value", "primary-key"):
            return cell
        if name == "last_non_null_value":
            return now if cell is None else cell
        if name.startswith("first"):
            if self.begun or (cell is None and name != "first_value"):
                return now
            self.begun = True
            return cell
        if name == "collect" and self.function.distinct and (now or cell) is not None:
            return distinct([*(now or []), *(cell or [])])
        if now is None or cell is None:
            return cell if now is None else now
        return self._together(now, cell)

    def add_older(self, now: Any, cell: Any) -> Any:
        if self.function.name == "collect" and not self.function.ignore_retract:
            return self.add(now, cell)
        return self.add(cell, now)

    def _together(self, now: Any, cell: Any) -> Any:
        name = self.function.name
        if name in ("sum", "product"):
            return self._number(now, cell, name)
        if name in _EXTREMES:
            return _EXTREMES[name](now, cell, key=_plain)
        if name in _UNIONS:
            return _UNIONS[name](now, cell)
        if name == "listagg":
            return self._texts(now, cell)
        if name == "collect":
            return [*now, *cell]
        if name == "merge_map":
            return list({**dict(now), **dict(cell)}.items())
        if name == "merge_map_with_keytime":
            return _timed(dict(now), cell)
        return self._nested(now, cell)

    def _number(self, now: Any, cell: Any, name: str) -> Any:
        if self.type.root == "DECIMAL":
            exact = now + cell if name == "sum" else _WIDE.multiply(now, cell)
            return _decimal(exact, self.type)
        kind = _NUMBERS[self.type.root]
        with np.errstate(all="ignore"):
            result = kind(now) + kind(cell) if name == "sum" else kind(now) * kind(cell)
        return kind(result).item()

    def _texts(self, now: str, cell: str) -> str:
        delimiter = self.function.delimiter
        if not now or not cell:
            return now or cell
        if not self.function.distinct:
            return now + delimiter + cell
        known = set(now.split(delimiter))
        for word in cell.split(delimiter):
            if word and word not in known:
                known.add(word)
                now += delimiter + word
        return now

    def _nested(self, now: Any, cell: Any) -> Any:
        limit = self.function.count_limit
        if limit is not None:
            if len(now) >= limit:
                return now
            cell = cell[: limit - len(now)]
        if not self.function.nested_key:
            return [*now, *cell]
        found: dict[Any, Any] = {}
        for row in (*now, *cell):
            key = self._key(row)
            old = found.get(key, {}) if self.function.name == "nested_partial_update" else {}
            news = {k: v for k, v in row.items() if v is not None} if old else row
            found[key] = {**old, **news}
        return list(found.values())

    def _key(self, row: Mapping[str, Any]) -> Any:
        return tuple(row[name] for name in self.function.nested_key or row)

    def retract(self, now: Any, cell: Any) -> Any:
        name = self.function.name
        if self.function.ignore_retract:
            return now
        if name == "last_value":
            return None
        if name == "primary-key":
            return cell
        if name == "last_non_null_value":
            return now if cell is None else None
        if name == "sum" and cell is not None:
            return self.add(now, _negated(cell, self.type))
        return now if now is None or cell is None else self._taken(now, cell)

    def _taken(self, now: Any, cell: Any) -> Any:
        name = self.function.name
        if name == "product":
            with np.errstate(all="ignore"):
                return (np.float64(now) / np.float64(cell)).item()
        if name == "collect":
            return _without(now, cell)
        if name == "merge_map":
            return [pair for pair in now if pair[0] not in dict(cell)]
        gone = [self._key(row) for row in cell]
        newest = {self._key(row): row for row in now}.values()
        kept = newest if self.function.nested_key else now
        return [row for row in kept if self._key(row) not in gone]


def distinct(cells: Sequence[Any]) -> list[Any]:
    """Each cell once."""
    return [cell for i, cell in enumerate(cells) if cell not in cells[:i]]


def _without(now: Sequence[Any], gone: Sequence[Any]) -> list[Any]:
    left = list(gone)
    return [cell for cell in now if cell not in left or left.remove(cell)]  # type: ignore[func-returns-value]


def _negated(cell: Any, t: DataType) -> Any:
    if t.root == "DECIMAL":
        return -cell
    with np.errstate(all="ignore"):
        return (-_NUMBERS[t.root](cell)).item()


def _decimal(exact: Decimal, t: DataType) -> Decimal | None:
    rounded = exact.quantize(Decimal(1).scaleb(-(t.scale or 0)), ROUND_HALF_UP, _WIDE)
    return rounded if abs(rounded) < Decimal(10) ** ((t.precision or 0) - (t.scale or 0)) else None


def _timed(now: dict[Any, Any], cell: Sequence[tuple[Any, Any]]) -> list[Any]:
    for key, row in cell:
        old = now.get(key)
        if row is None:
            now.pop(key, None)
        elif row["ts"] is not None and (old is None or old["ts"] is None or row["ts"] > old["ts"]):
            now[key] = row
    return list(now.items())
