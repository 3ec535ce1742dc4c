"""Aliases of fields prove that they were renamed."""

from typing import Any

import pytest

from ingestd.cdc.base import FormatSettings, SchemaChangeEvent, load_data_format
from tests.support.registered import Registered, chunk_of, record

ID = {"name": "id", "type": "long"}


def events(fields: list[dict[str, Any]], *rows: dict[str, Any]) -> list[SchemaChangeEvent]:
    registry = Registered()
    values = registry.avro(record("Item", fields), *rows)
    data_format = load_data_format("avro", FormatSettings(schemas=registry))
    return data_format.decode(chunk_of(values, None, topic="shop.inv.item"), {}, {}).schema_changes


def test_rows_show_the_names_that_their_fields_had() -> None:
    field = {"name": "n", "type": "int", "aliases": ["m", "k"]}
    (found,) = events([ID, field], {"id": 1, "n": 2}, {"id": 2, "n": 3})
    assert found.columns == (("m", "n"), ("k", "n"))
    assert (found.source.table, found.position, found.is_repeated) == ("item", 0, True)


@pytest.mark.parametrize("aliases", [[], ["id"], None])
def test_an_alias_that_is_another_field_proves_nothing(aliases: list[str] | None) -> None:
    field: dict[str, Any] = {"name": "n", "type": "int"}
    if aliases is not None:
        field["aliases"] = aliases
    assert events([ID, field], {"id": 1, "n": 2}) == []
