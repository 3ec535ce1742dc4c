"""A renamed column is one column, whichever name a row has it under."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.cdc.base import ChangeBatch, SourceTable
from ingestd.errors import SchemaConflictError
from ingestd.ingest.schemas.column_aliases import renamed
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import parse_type


def batch(
    columns: dict[str, tuple[str, list[Any]]], unavailable: dict[str, list[bool]] | None = None
) -> ChangeBatch:
    types = {name: parse_type(text) for name, (text, _) in columns.items()}
    arrays = {
        name: pa.array(values, to_arrow_type(types[name])) for name, (_, values) in columns.items()
    }
    count = len(next(iter(arrays.values())))
    return ChangeBatch(
        SourceTable("d", None, "t"), pa.table(arrays), types, ("old", "id"),
        np.zeros(count, np.int8), np.arange(count), np.full(count, -1), np.zeros(count, np.bool_),
        {name: np.array(marks) for name, marks in (unavailable or {}).items()},
    )  # fmt: skip


def test_values_of_both_names_are_one_column_of_the_wider_type() -> None:
    both = batch({"old": ("INT", [1, None]), "id": ("INT", [7, 8]), "new": ("BIGINT", [None, 2])})
    found = renamed(both, {"new": "old"})
    assert found.columns.to_pydict() == {"new": [1, 2], "id": [7, 8]}
    assert str(found.types["new"]) == "BIGINT"
    assert found.primary_keys == ("new", "id")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (("DECIMAL(12, 8)", [Decimal("0.00000001"), None]), ("STRING", [None, "x"]),
         ["0.00000001", "x"]),
        (("BIGINT", [2**53 + 1, None]), ("DOUBLE", [None, 0.5]), [2.0**53, 0.5]),
    ],
)  # fmt: skip
def test_values_under_the_old_name_have_the_form_that_a_widened_column_gives_them(
    old: tuple[str, list[Any]], new: tuple[str, list[Any]], expected: list[Any]
) -> None:
    """Paimon writes no exponent in decimals; a large integer loses digits, as type merges say."""
    found = renamed(batch({"old": old, "new": new, "id": ("INT", [7, 8])}), {"new": "old"})
    assert found.columns.column("new").to_pylist() == expected


def test_rows_that_have_one_of_the_columns_do_not_lack_the_other() -> None:
    columns = {"old": ("INT", [1, None, None]), "new": ("INT", [None, 2, None])}
    marks = {"old": [False, True, True], "new": [True, False, True]}
    found = renamed(batch(columns, marks), {"new": "old"})
    assert found.unavailable["new"].tolist() == [False, False, True]


def test_column_without_any_value_keeps_its_marks_under_the_new_name() -> None:
    found = renamed(batch({"id": ("INT", [1])}, {"old": [True]}), {"new": "old"})
    assert found.unavailable["new"].tolist() == [True]


def test_batch_without_the_old_name_is_left_alone() -> None:
    plain = batch({"new": ("INT", [1])})
    assert renamed(plain, {"new": "old"}) is plain


def test_types_that_never_meet_are_refused() -> None:
    both = batch({"old": ("INT", [1]), "new": ("BYTES", [b"x"])})
    with pytest.raises(SchemaConflictError, match=r"'new' is INT, and BYTES.*no type holds both"):
        renamed(both, {"new": "old"})
