"""The aggregate function merge_map_with_keytime: the entry with the latest time of each map key.

The value of an entry is a row with its time as text.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#merge_map_with_keytime
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ingestd.paimon.merge.elements import Elements, is_null
from ingestd.paimon.merge.events import REVERSED, SET, MergeEvents, Ops
from ingestd.paimon.merge.value_codes import order_codes, value_codes
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.merge_rules import FieldFunction
from ingestd.paimon.spec.row_selection import Indices, Mask


def merge_map_with_keytime(
    column: Column, events: MergeEvents, ops: Ops, function: FieldFunction
) -> Column:
    """Return a map per key with the latest entry of each map key; null for a key without maps.

    The time of an entry is the field `function.time_field` of its value (None: the last field). A
    single map of a key is kept unchanged. The first map of a key is taken as it is; in later maps,
    a null value removes the map key, and a value without a time changes nothing.
    """
    elements = Elements.of(column, events, ops)
    alone = elements.cells == 1
    at = np.flatnonzero(alone[elements.key])
    if bool((elements.cells > 1).any()):
        timed = _Timed.of(elements.values, function.time_field)
        at = np.union1d(at, timed.fold(elements, ops))
    at = at[np.argsort(elements.key[at], kind="stable")]
    return elements.gather(at, column.type)


@dataclass(frozen=True, slots=True)
class _Timed:
    """Entries of maps, as parallel arrays.

    `code` identifies the map key, `removes` is whether the value is null, and `time` is a number in
    the order of the times (-1: no time).
    """

    code: Indices
    removes: Mask
    time: Indices

    @classmethod
    def of(cls, entries: Array, time_field: str | None) -> "_Timed":
        struct: Any = entries
        items: Any = struct.field(1)
        kind = items.type
        number = kind.num_fields - 1 if time_field is None else kind.get_field_index(time_field)
        texts = items.flatten()[number]
        times = np.where(is_null(texts), -1, order_codes(texts))
        return cls(value_codes(struct.field(0)), is_null(items), times)

    def fold(self, elements: Elements, ops: Ops) -> Indices:
        """Return the positions of the kept entries of keys with several maps."""
        chosen = elements.chosen
        bounds = np.searchsorted(elements.event, np.arange(len(chosen.at) + 1))
        newest: dict[int, dict[int, int]] = {}
        several = elements.cells > 1
        for number in np.flatnonzero(several[chosen.key]).tolist():
            new = range(int(bounds[number]), int(bounds[number + 1]))
            key, op = int(chosen.key[number]), ops[chosen.at[number]]
            now = newest.get(key)
            plain = {int(self.code[entry]): entry for entry in new}
            if now is None or op == SET:
                newest[key] = plain
            elif op == REVERSED:
                self._take_in(plain, list(now.values()))
                newest[key] = plain
            else:
                self._take_in(now, list(new))
        kept = [entry for entries in newest.values() for entry in entries.values()]
        return np.array(kept, np.int64)

    def _take_in(self, now: dict[int, int], new: list[int]) -> None:
        for entry in new:
            code = int(self.code[entry])
            if self.removes[entry]:
                now.pop(code, None)
            elif self.time[entry] >= 0 and self._is_later(entry, now.get(code)):
                now[code] = entry

    def _is_later(self, entry: int, than: int | None) -> bool:
        return than is None or bool(self.removes[than]) or bool(self.time[entry] > self.time[than])
