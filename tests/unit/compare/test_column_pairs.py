"""Columns are paired as the configuration maps them, and the others have a reason."""

import re

import pytest

from ingestd.compare import postgres
from ingestd.compare.column_pairs import DatabaseColumn, DatabaseTable, Pairing, pair_columns
from ingestd.errors import UnsupportedError
from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.paimon.spec.data_types import DataField, parse_type

KEY = DatabaseColumn("id", "bigint", "bigint", is_ordered=True, is_number=True)


def source(*columns: DatabaseColumn, key: tuple[str, ...] = ("id",)) -> DatabaseTable:
    return DatabaseTable("shop", "orders", {one.name: one for one in (KEY, *columns)}, key)


def column(name: str, kind: str) -> DatabaseColumn:
    return DatabaseColumn(name, kind, kind)


def paired(table: DatabaseTable, types: dict[str, str], **settings: object) -> Pairing:
    fields = [DataField(n, name, parse_type(t)) for n, (name, t) in enumerate(types.items())]
    chosen = TableSettings(**settings)
    return pair_columns(table, fields, chosen, postgres)


def test_every_column_of_both_sides_is_compared_or_has_a_reason() -> None:
    shape = ShapeSettings(computed=(parse_computed("day", "date_format(at, yyyy)"),))
    found = paired(
        source(
            column("remark", "text"),
            column("place", "point"),
            column("secret", "text"),
            column("late", "text"),
            DatabaseColumn("twice", "numeric", "numeric", unpublished="generated"),
            column("span", "interval"),
        ),
        {"id": "BIGINT", "note": "STRING", "span": "BIGINT", "day": "STRING", "old": "INT"},
        evolution=EvolutionPolicy(aliases={"note": "remark"}),
        shape=ShapeSettings(computed=shape.computed, exclude=("secret",)),
    )
    assert found.names == ["id", "note"]
    assert {one.column: one.reason for one in found.others} == {
        "place": "not in the table of the lake",
        "secret": "left out by the configuration",
        "late": "not in the table of the lake",
        "twice": "generated",
        "span": "interval as BIGINT cannot be compared",
        "day": "added by the configuration",
        "old": "not in the source",
    }


@pytest.mark.parametrize(
    ("kind", "lake"),
    [
        ("interval", "STRING"),
        ("money", "STRING"),
        ("bytea", "STRING"),
        ("boolean", "INT"),
        ("integer", "DOUBLE"),
        ("double precision", "FLOAT"),
        ("time without time zone", "INT"),
        ("time with time zone", "STRING"),
        ("timestamp without time zone", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("timestamp with time zone", "STRING"),
        ("bit", "BYTES"),
        ("point[]", "STRING"),
    ],
)
def test_pairs_of_types_whose_texts_are_not_known_to_agree_are_named(kind: str, lake: str) -> None:
    found = paired(source(column("v", kind)), {"id": "BIGINT", "v": lake})
    assert [one.reason for one in found.others] == [f"{kind} as {lake} cannot be compared"]


@pytest.mark.parametrize(
    ("kind", "lake", "ordered"),
    [("bigint", "BIGINT", True), ("bigint", "STRING", False), ("bigint", "DECIMAL(20, 2)", False)],
)
def test_keys_are_ordered_if_the_lake_has_their_numbers(
    kind: str, lake: str, ordered: bool
) -> None:
    assert paired(source(), {"id": lake}).is_ordered is ordered


def test_a_key_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no primary key"):
        paired(source(key=()), {"id": "BIGINT"})
    with pytest.raises(UnsupportedError, match=r"column span of the primary key .* interval as"):
        paired(
            source(column("span", "interval"), key=("span",)), {"id": "BIGINT", "span": "BIGINT"}
        )
    with pytest.raises(UnsupportedError, match="not in the table of the lake"):
        paired(source(column("no", "text"), key=("no",)), {"id": "BIGINT"})


@pytest.mark.parametrize("kind", ["real", "time without time zone", "bit", "integer[]"])
def test_a_key_whose_text_is_not_a_value_of_its_type_is_refused_by_name(kind: str) -> None:
    lake = {"real": "FLOAT", "bit": "BOOLEAN", "time without time zone": "BIGINT"}
    key = DatabaseColumn("id", kind, kind)
    array = {"type": "ARRAY", "element": "INT"}
    fields = [DataField(0, "id", parse_type(lake.get(kind, array)))]
    table = DatabaseTable("shop", "orders", {"id": key}, ("id",))
    with pytest.raises(UnsupportedError, match=f"keys of the type {re.escape(kind)} cannot be"):
        pair_columns(table, fields, TableSettings(), postgres)
