"""Settings of columns: defaults fill what a table leaves open, and nonsense is refused."""

import pytest

from ingestd.errors import ConfigError
from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.settings.shape_settings import ShapeSettings, check_shape

DAY = parse_computed("day", "truncate(at, 10)")
MONTH = parse_computed("month", "truncate(day, 7)")


def test_computed_columns_of_a_table_stand_beside_those_of_the_defaults_or_replace_them() -> None:
    other = parse_computed("day", "truncate(placed, 10)")
    found = ShapeSettings((other,)).over(ShapeSettings((DAY, MONTH)))
    assert found.computed == (MONTH, other)


def test_a_table_can_ask_for_no_metadata_where_the_defaults_do() -> None:
    defaults = ShapeSettings(metadata=("topic",), metadata_prefix="k_")
    assert list(ShapeSettings().over(defaults).metadata_columns()) == [("k_topic", "topic")]
    assert ShapeSettings(metadata=(), metadata_prefix="").over(defaults).is_plain


def test_selection_is_by_include_less_exclude() -> None:
    shape = ShapeSettings(include=("a", "b"), exclude=("b",))
    assert [name for name in "abc" if shape.selects(name)] == ["a"]
    assert ShapeSettings(exclude=("b",)).selects("c")


def test_what_a_column_is_made_from_in_the_end() -> None:
    shape = ShapeSettings((DAY, MONTH, parse_computed("x", "now()")))
    assert list(shape.sources_of("month")) == ["at"]
    assert list(shape.sources_of("id")) == ["id"]
    assert list(shape.sources_of("x")) == []


def test_now_is_no_primary_key() -> None:
    shape = ShapeSettings((parse_computed("at", "now()"),))
    check_shape(shape, ("id",))
    with pytest.raises(ConfigError, match="must keep its value"):
        check_shape(shape, ("id", "at"))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (ShapeSettings((parse_computed("a", "upper(a)"),)), "depends on itself"),
        (
            ShapeSettings((parse_computed("topic", "now()"),), ("topic",)),
            "a metadata column has the same name",
        ),
        (ShapeSettings(include=("a",), exclude=("a",)), "'a' is both"),
        (ShapeSettings(include=()), "selects no column"),
    ],
)
def test_settings_that_mean_nothing_are_refused(shape: ShapeSettings, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_shape(shape)
