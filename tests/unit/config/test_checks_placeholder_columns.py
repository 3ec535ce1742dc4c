"""Columns that only options speak of."""

import pytest

from ingestd.config.checks import UNKNOWN_KEY, placeholder_columns, placeholder_key
from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.merge_checks import check_merge_options
from ingestd.paimon.spec.schema import new_schema


def test_declared_types_stay_and_keys_are_text() -> None:
    settings = TableSettings(
        primary_keys=("id",),
        partition_keys=("day",),
        column_types={"id": DataType("BIGINT")},
        options={"bucket-key": "id", "fields.note.stats-mode": "none"},
    )
    text = DataType("STRING")
    columns = placeholder_columns(settings)
    assert columns == {"id": DataType("BIGINT"), "day": text, "note": text}


def test_without_anything_there_is_an_unknown_key() -> None:
    assert placeholder_key(TableSettings()) == (UNKNOWN_KEY,)
    assert list(placeholder_columns(TableSettings())) == [UNKNOWN_KEY]


@pytest.mark.parametrize(
    "function",
    [
        "sum", "product", "max", "last_value", "bool_and", "listagg", "collect", "merge_map",
        "merge_map_with_keytime", "nested_update", "nested_partial_update",
    ],
)  # fmt: skip
def test_functions_get_a_column_that_fits_them(function: str) -> None:
    options = {
        "merge-engine": "aggregation", "fields.x.aggregate-function": function,
        "fields.x.nested-key": "a,b", "fields.x.ts-field": "at",
    }  # fmt: skip
    columns = placeholder_columns(TableSettings(options=options))
    check_merge_options(new_schema(list(columns.items()), [UNKNOWN_KEY], (), options, 0))
