"""Names of tables and the registry of metastores."""

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import (
    METASTORES,
    Identifier,
    load_catalog,
    nearest_name_hint,
)


def test_a_name_is_split_at_its_first_dot() -> None:
    assert Identifier.parse("shop.orders") == Identifier("shop", "orders")
    assert Identifier.parse("shop.orders.v2") == Identifier("shop", "orders.v2")
    assert str(Identifier("shop", "orders")) == "shop.orders"


@pytest.mark.parametrize("text", ["orders", "", ".orders", "shop.", "a/b.c", "shop.a\\b"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        Identifier.parse(text)


@pytest.mark.parametrize(
    "name",
    ["", " ", " t", "t ", ".", "..", ".hidden", "a/b", "../x", "a\\b", "a\0b", "a\nb", "a:b",
     "x" * 251, "é" * 126, "t$files"],
)  # fmt: skip
def test_a_table_name_stays_inside_its_database(name: str) -> None:
    with pytest.raises(ConfigError, match="table name"):
        Identifier("db", name)


@pytest.mark.parametrize("name", ["", "..", "a.b", "a/b", ".db"])
def test_a_database_name_stays_inside_the_warehouse(name: str) -> None:
    with pytest.raises(ConfigError, match="database name"):
        Identifier(name, "t")


@pytest.mark.parametrize("name", ["t", "T_1", "größe", "表", "a b", "x" * 250, "a..b", "a%20"])
def test_ordinary_names_are_fine(name: str) -> None:
    assert Identifier("db", name).table == name


def test_an_unknown_metastore_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ConfigError, match="unknown metastore 'glue'; known: filesystem"):
        load_catalog("glue", "/w")


@pytest.mark.parametrize("metastore", sorted(METASTORES))
def test_every_registered_metastore_refuses_options_that_it_does_not_know(metastore: str) -> None:
    with pytest.raises(ConfigError, match="no option lock"):
        load_catalog(metastore, "/w", {"lock": "zookeeper"})


def test_a_catalog_of_directories_needs_no_options(tmp_path: object) -> None:
    assert load_catalog("filesystem", str(tmp_path)).list_databases() == []


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("order", ["orders", "items"], "; did you mean 'orders'?"),
        ("zzz", ["b", "a"], "; existing: a, b"),
        ("zzz", [], "; none exists yet"),
        ("zzz", [f"t{n:02}" for n in range(12)], "t09, ..."),
    ],
)
def test_a_missing_name_comes_with_a_hint(name: str, known: list[str], hint: str) -> None:
    assert nearest_name_hint(name, known).endswith(hint)
