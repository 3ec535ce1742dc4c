from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.merge.merged_rows import LEVEL
from ingestd.paimon.table.compact.changelog_rows import KEY_NUMBER, ChangeRules, changes_between


def kinds(old: Any, new: Any, kind: pa.DataType) -> list[int]:
    """The kinds of changes of one key, of which one value is written over another."""
    rows = pa.table(
        {
            "_VALUE_KIND": np.zeros(2, np.int8),
            LEVEL: np.array([0, 5], np.int32),
            KEY_NUMBER: np.zeros(2, np.int64),
            "v": pa.array([new, old], kind),
        }
    )
    rules = ChangeRules(compared=("v",))
    changes = changes_between(rows, rows.slice(0, 1), rules, engine="deduplicate", top_level=None)
    return changes.column("_VALUE_KIND").to_pylist()


POINT = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.string(), "a", "b"),
        (pa.float64(), 1.5, 2.5),
        (pa.binary(), b"", None),
        (pa.list_(pa.int32()), [1, 2], [2, 1]),
        (pa.map_(pa.string(), pa.int32()), [("a", 1)], [("a", 2)]),
        (POINT, {"x": 1, "y": ["a"]}, {"x": 1, "y": [None]}),
    ],
    ids=str,
)
def test_values_of_any_type_are_compared(kind: pa.DataType, one: Any, other: Any) -> None:
    assert kinds(one, one, kind) == []
    assert kinds(None, None, kind) == []
    for old, new in ((one, other), (other, one), (None, one), (one, None)):
        assert kinds(old, new, kind) == [1, 2]


def test_nan_is_never_as_before_and_zeros_are_equal() -> None:
    nan = float("nan")
    assert kinds(nan, nan, pa.float64()) == [1, 2]
    assert kinds(0.0, -0.0, pa.float64()) == []
