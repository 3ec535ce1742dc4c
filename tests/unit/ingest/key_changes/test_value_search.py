"""Which row a value comes from that an update left out, over changes of the key."""

import numpy as np
import pytest

from ingestd.ingest.key_changes.value_search import (
    RowHistory,
    deletes_of_inserts,
    preceding_rows,
    value_origins,
)
from ingestd.paimon.spec.data_types import RowKind

Change = tuple[str, int, int, bool]
"""Kind, key, position, and whether the value is left out."""
KINDS = {kind.symbol: kind for kind in RowKind}


def last_origin(*changes: Change, sources: list[int] | None = None) -> tuple[str, int]:
    """Where the value of the last change comes from."""
    history = RowHistory(
        keys=np.array([key for _, key, _, _ in changes]),
        kinds=np.array([KINDS[kind] for kind, *_ in changes], np.int8),
        sources=np.array(sources or [0] * len(changes)),
        positions=np.array([position for _, _, position, _ in changes]),
    )
    left_out = np.array([omitted for *_, omitted in changes])
    paired, preceding = deletes_of_inserts(history), preceding_rows(history)
    origins = value_origins(history, left_out, paired, preceding).of(np.array([len(changes) - 1]))
    for name in ("rows", "table_keys", "unpaired"):
        [index] = getattr(origins, name).tolist()
        if index >= 0:
            return name, index
    return "nothing", -1


@pytest.mark.parametrize(
    ("changes", "origin"),
    [
        pytest.param(
            [("+I", 1, 1, False), ("-D", 1, 2, False), ("+I", 2, 2, True)], ("rows", 0), id="move"
        ),
        pytest.param([("-D", 1, 2, False), ("+I", 2, 2, True)], ("table_keys", 0), id="in table"),
        pytest.param(
            [("-D", 1, 1, False), ("-D", 1, 2, False), ("+I", 2, 2, True)],
            ("nothing", -1),
            id="of a deleted row",
        ),
        pytest.param([("-D", 1, 1, False), ("+I", 2, 2, True)], ("unpaired", 1), id="no delete"),
        pytest.param(
            [("+I", 1, 1, False), ("-U", 1, 2, False), ("+U", 1, 2, True), ("-D", 1, 3, False),
             ("+I", 2, 3, True)],
            ("rows", 0),
            id="rows before updates have no value",
        ),
        pytest.param(
            [("+I", 2, 3, True), ("-D", 1, 3, False), ("-D", 2, 4, False), ("+I", 3, 4, True)],
            ("table_keys", 1),
            id="chain, insert first",
        ),
        pytest.param(
            [("+I", 1, 1, False), ("-D", 1, 2, False), ("+I", 2, 2, True), ("+U", 2, 3, False),
             ("-D", 2, 4, False), ("+I", 1, 4, True)],
            ("rows", 3),
            id="there and back",
        ),
        pytest.param(
            [("+I", 1, 1, False), ("-D", 1, 2, False), ("+I", 2, 2, True), ("+I", 1, 3, False),
             ("-D", 1, 2, False), ("+I", 2, 2, True)],
            ("rows", 0),
            id="sent again",
        ),
        pytest.param([("-D", 1, -1, False), ("+I", 2, -1, True)], ("unpaired", 1), id="unknown"),
        pytest.param([("-D", 2, 2, False), ("+I", 2, 2, True)], ("table_keys", 0), id="own delete"),
        pytest.param(
            [("+I", 1, 1, False), ("-D", 1, 2, False), ("-D", 3, 2, False), ("+I", 2, 2, True)],
            ("unpaired", 3),
            id="deletes of two rows",
        ),
    ],
)  # fmt: skip
def test_a_value_is_traced_over_changes_of_the_key(
    changes: list[Change], origin: tuple[str, int]
) -> None:
    assert last_origin(*changes) == origin


def test_equal_positions_of_other_source_tables_are_other_updates() -> None:
    changes: list[Change] = [("-D", 1, 2, False), ("+I", 2, 2, True)]
    assert last_origin(*changes, sources=[1, 0]) == ("unpaired", 1)


def test_events_in_an_order_that_no_database_has_end() -> None:
    circle: list[Change] = [
        ("+I", 1, 4, True), ("+I", 2, 3, True), ("-D", 1, 3, False), ("-D", 2, 4, False),
        ("+U", 2, 5, True),
    ]  # fmt: skip
    assert last_origin(*circle) == ("nothing", -1)
    assert last_origin(*circle[:1]) == ("unpaired", 0)
