import re

import pytest

from ingestd.errors import ConfigError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.ordering import ordering_rejection, refuse_ordering
from ingestd.ingest.settings.shape_settings import ShapeSettings

COLUMN = "source_position"


def test_a_table_of_that_ordering_has_the_column_and_the_option() -> None:
    shape = ShapeSettings(metadata=("topic",), metadata_prefix="m_")
    found = TableSettings(shape=shape, ordering="source-position").ordered()
    assert found.shape.metadata == ("topic", COLUMN)
    assert found.options == {"sequence.field": "m_source_position"}
    assert TableSettings(ordering="arrival").ordered() == TableSettings(ordering="arrival")


@pytest.mark.parametrize(
    ("options", "keys", "message"),
    [
        ({}, (), "is for tables with a primary key"),
        ({"sequence.field": "v"}, None, "it is 'v': remove one of them"),
        ({"merge-engine": "first-row"}, None, "no effect with 'merge-engine' = 'first-row'"),
        ({"sequence.field.sort-order": "descending"}, None, "that of the smallest"),
    ],
)
def test_what_cannot_be_ordered_so_is_refused(
    options: dict[str, str], keys: tuple[str, ...] | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        refuse_ordering(options, COLUMN, keys)


def test_the_ordering_of_a_table_is_settled_when_it_is_created() -> None:
    ours = {"sequence.field": COLUMN}
    assert ordering_rejection("db.t", ours, COLUMN, by_position=True) is None
    assert ordering_rejection("db.t", {"sequence.field": "v"}, COLUMN, by_position=False) is None
    conflict = ordering_rejection("db.t", {}, COLUMN, by_position=True)
    assert conflict is not None
    assert re.search(r"db\.t: .* was created with '': set ordering", conflict.message)
    descending = ours | {"sequence.field.sort-order": "descending"}
    conflict = ordering_rejection("db.t", descending, COLUMN, by_position=True)
    assert conflict is not None
    assert "that of the smallest: remove one of them" in conflict.message
    for field in (COLUMN, f"other_prefix_{COLUMN}"):
        conflict = ordering_rejection("db.t", {"sequence.field": field}, COLUMN, by_position=False)
        assert conflict is not None
        assert "db.t was created with ordering 'source-position'" in conflict.message
