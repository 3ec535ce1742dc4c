"""The registry of aggregate functions, which fold the events of a key into one value.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#aggregation-functions
"""

from collections.abc import Callable, Mapping

import numpy as np

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge import (
    bitmaps,
    element_functions,
    listagg,
    sums,
    timed_maps,
    value_functions,
)
from ingestd.paimon.merge.events import RETRACT, SKIP, MergeEvents, Ops
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.merge_rules import FieldFunction

_Plain = Callable[[Column, MergeEvents, Ops], Column]
_Configured = Callable[[Column, MergeEvents, Ops, FieldFunction], Column]

PLAIN: Mapping[str, _Plain] = {
    "sum": sums.total,
    "product": sums.product,
    "max": value_functions.largest,
    "min": value_functions.smallest,
    "last_value": value_functions.last_value,
    "last_non_null_value": value_functions.last_non_null_value,
    "first_value": value_functions.first_value,
    "first_non_null_value": value_functions.first_non_null_value,
    "first_not_null_value": value_functions.first_non_null_value,
    "bool_and": value_functions.smallest,
    "bool_or": value_functions.largest,
    "primary-key": value_functions.primary_key,
    "rbm32": bitmaps.union32,
    "rbm64": bitmaps.union64,
}
"""Functions without options of their own."""

CONFIGURED: Mapping[str, _Configured] = {
    "listagg": listagg.listagg,
    "collect": element_functions.collect,
    "merge_map": element_functions.merge_map,
    "merge_map_with_keytime": timed_maps.merge_map_with_keytime,
    "nested_update": element_functions.nested_update,
    "nested_partial_update": element_functions.nested_partial_update,
}
"""Functions with options."""

RETRACTABLE = frozenset(
    {
        "sum", "product", "last_value", "last_non_null_value", "primary-key", "collect",
        "merge_map", "nested_update",
    }
)  # fmt: skip
"""Functions that can retract a value."""


def takes_retractions(function: FieldFunction) -> bool:
    """Return whether a column with this function accepts deletions.

    The function then retracts values, or ignores retractions.
    """
    return function.ignore_retract or function.name in RETRACTABLE


def fold(
    name: str, column: Column, events: MergeEvents, ops: Ops, function: FieldFunction
) -> Column:
    """Fold the column `name` by its aggregate function; return one cell per key.

    `events` are the rows of each key from oldest to newest, and `ops` (n,) has the operation of
    each event on the column, such as AGG or RETRACT. Raises UnsupportedError for a function that is
    unknown, that does not fit the column (`function.refusal`), or that gets retractions and does
    not support them; FormatError for a damaged bitmap.
    """
    if function.refusal is not None:
        raise UnsupportedError(function.refusal)
    if function.ignore_retract:
        ops = np.where(ops == RETRACT, SKIP, ops)
    elif function.name not in RETRACTABLE and bool((ops == RETRACT).any()):
        raise UnsupportedError(
            f"aggregate function '{function.name}' of column '{name}' cannot take back the value "
            f"of a deleted row; set 'fields.{name}.ignore-retract' = 'true' or 'ignore-delete' = "
            "'true'"
        )
    if function.name in PLAIN:
        return PLAIN[function.name](column, events, ops)
    if function.name not in CONFIGURED:
        raise UnsupportedError(
            f"aggregate function '{function.name}' of column '{name}' is not supported; these "
            f"are: {', '.join(sorted({*PLAIN, *CONFIGURED}))}"
        )
    return CONFIGURED[function.name](column, events, ops, function)
