"""Folding elements event by event: where values are taken back or there is a limit.

Elements are pairs of a code, which is equal for equal elements (-1: a null row), and a position;
no one looks at the values themselves.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ingestd.paimon.merge.elements import Elements
from ingestd.paimon.merge.events import RETRACT, REVERSED, SET, Index, Mask, Ops

Part = tuple[int, int]
"""Code and position of an element."""
_Parts = list[Part]


@dataclass(frozen=True, slots=True)
class Fold:
    """How a function merges: `merge` what there is (None: nothing) with what comes after it,
    `retract` from what there is. `turns`: an older value is what there is, and the other comes."""

    merge: Callable[[_Parts | None, _Parts], _Parts]
    retract: Callable[[_Parts, _Parts], _Parts]
    turns: bool = True


def stepwise(
    elements: Elements, codes: Index, ops: Ops, keys: Mask, fold: Fold
) -> tuple[Index, Mask]:
    """Positions of the elements that stay of the marked keys, by key, and which keys have cells."""
    chosen = elements.chosen
    present = chosen.present.copy()
    bounds = np.searchsorted(elements.event, np.arange(len(chosen.at) + 1))
    found: dict[int, _Parts | None] = dict.fromkeys(np.flatnonzero(keys).tolist())
    for number in np.flatnonzero(keys[chosen.key]).tolist():
        start, end = int(bounds[number]), int(bounds[number + 1])
        new = list(zip(codes[start:end].tolist(), range(start, end), strict=True))
        key = int(chosen.key[number])
        found[key] = _step(found[key], new, int(ops[chosen.at[number]]), fold)
    positions: list[int] = []
    for key, parts in found.items():
        present[key] = parts is not None
        positions += [position for _, position in parts or ()]
    return np.array(positions, np.int64), present


def _step(now: _Parts | None, new: _Parts, op: int, fold: Fold) -> _Parts | None:
    if op == SET:
        return new
    if op == RETRACT:
        return None if now is None else fold.retract(now, new)
    if op == REVERSED and fold.turns and now is not None:
        return fold.merge(new, now)
    return fold.merge(now, new)


def collecting(distinct: bool) -> Fold:
    """collect: what is taken back is taken out once for each time."""

    def merge(now: _Parts | None, new: _Parts) -> _Parts:
        together = [*(now or ()), *new]
        return _firsts(together) if distinct else together

    def retract(now: _Parts, new: _Parts) -> _Parts:
        gone = [code for code, _ in new]
        kept = []
        for part in now:
            if part[0] in gone:
                gone.remove(part[0])
            else:
                kept.append(part)
        return kept

    return Fold(merge, retract, turns=False)


def mapping() -> Fold:
    """merge_map: entries by map key, which are taken back by map key, too."""

    def merge(now: _Parts | None, new: _Parts) -> _Parts:
        return new if now is None else list(_by_code([*now, *new]).values())

    return Fold(merge, _without_codes)


def nesting(keyed: bool, limit: int | None) -> Fold:
    """nested_update, by nested key or as whole rows, up to a number of rows."""

    def merge(now: _Parts | None, new: _Parts) -> _Parts:
        if now is None:
            return new
        if limit is not None and len(now) >= limit:
            return now
        room = None if limit is None else limit - len(now)
        together = [*_rows(now), *_rows(new)[:room]]
        return list(_by_code(together).values()) if keyed else together

    def retract(now: _Parts, new: _Parts) -> _Parts:
        there = list(_by_code(_rows(now)).values()) if keyed else _rows(now)
        return _without_codes(there, _rows(new))

    return Fold(merge, retract)


def _by_code(parts: _Parts) -> dict[int, Part]:
    return {part[0]: part for part in parts}


def _firsts(parts: _Parts) -> _Parts:
    found: dict[int, Part] = {}
    for part in parts:
        found.setdefault(part[0], part)
    return list(found.values())


def _rows(parts: _Parts) -> _Parts:
    return [part for part in parts if part[0] >= 0]


def _without_codes(now: _Parts, new: _Parts) -> _Parts:
    gone = {code for code, _ in new}
    return [part for part in now if part[0] not in gone]
