"""The aggregate functions collect, merge_map, nested_update and nested_partial_update.

Keys without retractions are folded in whole arrays; the others, and nested_update with a limit, are
folded element by element (`stepwise`).

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#aggregation-functions
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.paimon.merge.elements import (
    Elements,
    first_of_each,
    is_null,
    last_of_each,
    list_array,
    list_offsets,
)
from ingestd.paimon.merge.events import RETRACT, REVERSED, SET, SKIP, MergeEvents, Ops, whole
from ingestd.paimon.merge.value_codes import joint_codes, value_codes
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.merge_rules import FieldFunction
from ingestd.paimon.spec.row_selection import Indices, Mask

Part = tuple[int, int]
"""The code and the position of an element."""
Parts = list[Part]
"""The elements of a cell, in order."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The steps by which an element function combines the cells of a key.

    A cell is a list of elements, each a pair (code, position); equal elements have equal codes.
    `merge` combines the accumulator (None: empty) with a newer cell; `retract` removes the elements
    of a cell from the accumulator. An older cell is merged like a newer one, unless `swaps_older`
    is set: then `merge` gets the older cell as the accumulator, and the accumulator as the newer.
    """

    merge: Callable[[Parts | None, Parts], Parts]
    retract: Callable[[Parts, Parts], Parts]
    swaps_older: bool = True


def stepwise(
    elements: Elements, codes: Indices, ops: Ops, keys: Mask, fold: Fold
) -> tuple[Indices, Mask]:
    """Fold the cells of some keys element by element.

    `codes` (n,) are equal for equal elements, `ops` are the operations of the events, and `keys`
    (keys,) marks the keys to fold. Returns the positions of the remaining elements of these keys,
    and a mask of all keys whose result is not null.
    """
    chosen = elements.chosen
    present = chosen.present.copy()
    bounds = np.searchsorted(elements.event, np.arange(len(chosen.at) + 1))
    by_key: dict[int, Parts | None] = dict.fromkeys(np.flatnonzero(keys).tolist())
    for number in np.flatnonzero(keys[chosen.key]).tolist():
        start, end = int(bounds[number]), int(bounds[number + 1])
        new = list(zip(codes[start:end].tolist(), range(start, end), strict=True))
        key = int(chosen.key[number])
        by_key[key] = _step(by_key[key], new, int(ops[chosen.at[number]]), fold)
    positions: list[int] = []
    for key, parts in by_key.items():
        present[key] = parts is not None
        positions += [position for _, position in parts or ()]
    return np.array(positions, np.int64), present


def _step(now: Parts | None, new: Parts, op: int, fold: Fold) -> Parts | None:
    if op == SET:
        return new
    if op == RETRACT:
        return None if now is None else fold.retract(now, new)
    if op == REVERSED and fold.swaps_older and now is not None:
        return fold.merge(new, now)
    return fold.merge(now, new)


def collecting(distinct: bool) -> Fold:
    """Return the steps of the function collect.

    A retraction removes an equal element for each of its elements. With `distinct`, each element is
    kept once.
    """

    def merge(now: Parts | None, new: Parts) -> Parts:
        together = [*(now or ()), *new]
        return _firsts(together) if distinct else together

    def retract(now: Parts, new: Parts) -> Parts:
        gone = [code for code, _ in new]
        kept = []
        for element in now:
            if element[0] in gone:
                gone.remove(element[0])
            else:
                kept.append(element)
        return kept

    return Fold(merge, retract, swaps_older=False)


def mapping() -> Fold:
    """Return the steps of the function merge_map: entries are added and retracted by map key."""

    def merge(now: Parts | None, new: Parts) -> Parts:
        return new if now is None else list(_by_code([*now, *new]).values())

    return Fold(merge, _without_codes)


def nesting(keyed: bool, limit: int | None) -> Fold:
    """Return the steps of the function nested_update.

    The first cell of a key is kept whole; rows of later cells are added until the result has
    `limit` rows (None: no limit). If `keyed`, a newer row of a nested key replaces the older row.
    """

    def merge(now: Parts | None, new: Parts) -> Parts:
        if now is None:
            return new
        if limit is not None and len(now) >= limit:
            return now
        room = None if limit is None else limit - len(now)
        together = [*_rows(now), *_rows(new)[:room]]
        return list(_by_code(together).values()) if keyed else together

    def retract(now: Parts, new: Parts) -> Parts:
        there = list(_by_code(_rows(now)).values()) if keyed else _rows(now)
        return _without_codes(there, _rows(new))

    return Fold(merge, retract)


def _by_code(parts: Parts) -> dict[int, Part]:
    return {element[0]: element for element in parts}


def _firsts(parts: Parts) -> Parts:
    newest: dict[int, Part] = {}
    for element in parts:
        newest.setdefault(element[0], element)
    return list(newest.values())


def _rows(parts: Parts) -> Parts:
    return [element for element in parts if element[0] >= 0]


def _without_codes(now: Parts, new: Parts) -> Parts:
    gone = {code for code, _ in new}
    return [element for element in now if element[0] not in gone]


def collect(column: Column, events: MergeEvents, ops: Ops, function: FieldFunction) -> Column:
    """Return the elements of all non-null arrays of each key; null for a key without arrays.

    With `function.distinct`, each element is kept once, in order of arrival (Java keeps them in no
    defined order); a key whose only array is that of a SET event keeps it unchanged. Each element
    of a retracted array removes an equal element. As in Java, two binary values are never equal.
    """
    # Java reverses older values only where it wraps the function to ignore retractions.
    retracts = _keys_with(events, ops == RETRACT)
    turns = function.ignore_retract
    elements = Elements.of(column, events, ops, virtual=turns)
    if not function.distinct and not bool(retracts.any()):
        return elements.gather(np.arange(len(elements.key)), column.type)
    kind: Any = elements.values.type
    binary = pa.types.is_binary(kind)
    codes = np.arange(len(elements.key)) if binary else value_codes(elements.values)
    kept = np.ones(len(codes), np.bool_)
    if function.distinct:
        kept = first_of_each(elements.key, codes) | _raw(elements, events, ops, turns)
    fold = collecting(function.distinct)
    return _folded(elements, kept, codes, ops, retracts, fold, cell_type=column.type)


def _raw(elements: Elements, events: MergeEvents, ops: Ops, turns: bool) -> Mask:
    """Return a mask of the elements of cells in which repeated elements are kept."""
    if not pa.types.is_nested(elements.values.type):
        return _ends_with_set(events, ops)[elements.key]
    of_cell = ops[elements.chosen.at]
    leads = np.diff(elements.chosen.key, prepend=-1) != 0
    raw = (of_cell == SET) | (leads & (of_cell == REVERSED) & turns)
    marks: Mask = raw[elements.event]
    return marks


def merge_map(column: Column, events: MergeEvents, ops: Ops, function: FieldFunction) -> Column:
    """Merge the maps of each primary key into one, with the newest value of each map key.

    A retracted map removes the entries with its map keys. A key without maps gets null.
    """
    retracts = _keys_with(events, ops == RETRACT)
    elements = Elements.of(column, events, ops, virtual=not bool(retracts.any()))
    entries: Any = elements.values
    codes = value_codes(entries.field(0))
    if bool(retracts.any()):
        retracts |= _keys_with(events, ops == REVERSED)
    kept = last_of_each(elements.key, codes)
    return _folded(elements, kept, codes, ops, retracts, mapping(), cell_type=column.type)


def nested_update(column: Column, events: MergeEvents, ops: Ops, function: FieldFunction) -> Column:
    """Return all rows of the arrays per key; with `nested_key`, the newest row of each nested key.

    `nested_key` and `count_limit` are settings of `function`. The first array of a key is kept
    whole; rows of later arrays are added until the result has `count_limit` rows. A retracted array
    removes its rows. A key without arrays gets null.
    """
    limited = function.count_limit is not None
    step_keys = np.ones(events.count, np.bool_) if limited else _keys_with(events, ops == RETRACT)
    virtual = not bool(step_keys.any())
    elements = Elements.of(column, events, ops, virtual=virtual)
    codes = _row_codes(elements.values, function.nested_key)
    nulls = is_null(elements.values)
    codes[nulls] = -1
    if not virtual:
        step_keys |= _keys_with(events, ops == REVERSED)
    kept = ~nulls
    if function.nested_key:
        kept &= last_of_each(elements.key, codes)
    kept |= (elements.cells == 1)[elements.key]
    fold = nesting(bool(function.nested_key), function.count_limit)
    return _folded(elements, kept, codes, ops, step_keys, fold, cell_type=column.type)


def nested_partial_update(
    column: Column, events: MergeEvents, ops: Ops, function: FieldFunction
) -> Column:
    """Return one row per nested key, with the newest non-null value of each field.

    `function.nested_key` names the fields of the nested key. If a key has a single array, this
    array is kept unchanged. Retractions are not supported.
    """
    elements = Elements.of(column, events, ops, virtual=True)
    rows = elements.values
    alone = (elements.cells == 1)[elements.key]
    used = np.flatnonzero(alone | ~is_null(elements.values))
    codes = _row_codes(elements.values, function.nested_key)
    # Rows of a key's only cell are kept as they are, so each row counts as a nested key of its own.
    codes = np.where(alone, len(codes) + np.arange(len(codes)), codes)[used]
    key = elements.key[used]
    order = np.lexsort((np.arange(len(used)), codes, key))
    groups = joint_codes([key[order], codes[order]], len(order))
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    nested = MergeEvents(used[order], starts, groups)
    kind: Any = rows.type
    children = [
        whole(nested.pick(child, nested.last(nested.valid(child))))
        for child in (_child(rows, number) for number in range(kind.num_fields))
    ]
    fields = [kind.field(number) for number in range(kind.num_fields)]
    alone_null = is_null(elements.values)[nested.rows[starts]]
    merged = pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(alone_null))
    offsets = list_offsets(key[order][starts], elements.chosen.present)
    return list_array(column.type, offsets, merged)


def _folded(
    elements: Elements,
    kept: Mask,
    codes: Indices,
    ops: Ops,
    step_keys: Mask,
    fold: Fold,
    *,
    cell_type: pa.DataType,
) -> Array:
    """Return the cells of keys folded in arrays, joined with those of keys folded by steps.

    `kept` marks the elements that arrays keep, and `step_keys` the keys to fold by steps.
    """
    at = np.flatnonzero(kept & ~step_keys[elements.key])
    if not bool(step_keys.any()):
        return elements.gather(at, cell_type)
    stepped, present = stepwise(elements, codes, ops, step_keys, fold)
    at = np.concatenate([at, stepped])
    at = at[np.argsort(elements.key[at], kind="stable")]
    offsets = list_offsets(elements.key[at], present)
    return list_array(cell_type, offsets, elements.values.take(at))


def _row_codes(rows: Array, names: tuple[str, ...]) -> Indices:
    """Return codes that are equal for rows with equal fields `names` (empty: all fields)."""
    if not names:
        return value_codes(rows).copy()
    kind: Any = rows.type
    columns = [value_codes(_child(rows, kind.get_field_index(name))) for name in names]
    return joint_codes(columns, len(rows)).copy()


def _child(rows: Array, number: int) -> Array:
    """Return the field `number` of structs, null where the struct is null."""
    struct: Any = rows
    child: Array = struct.flatten()[number]
    return child


def _keys_with(events: MergeEvents, marked: Mask) -> Mask:
    keys = np.zeros(events.count, np.bool_)
    keys[events.key[marked]] = True
    return keys


def _ends_with_set(events: MergeEvents, ops: Ops) -> Mask:
    last = events.last(ops != SKIP)
    ends: Mask = (last >= 0) & (ops[last] == SET)
    return ends
