from collections.abc import Mapping

import pytest

from ingestd.config.allowed_keys import shape_of
from ingestd.config.document import Document, parse_document
from ingestd.config.load import apply_environment
from ingestd.config.model import Config

FILE = """
warehouse: {path: /lake}
sources:
  shop-eu:
    kafka: {bootstrap.servers: "a:1", sasl.password: x}
    topics: [t]
    format: debezium-json
defaults:
  options: {target-file-size: 1mb}
tables:
  Orders: {options: {bucket: '4'}}
"""
SHAPE = shape_of(Config)


def applied(environ: Mapping[str, str]) -> tuple[Document, list[str]]:
    document = parse_document(FILE, "f.yaml")
    return document, [str(one) for one in apply_environment(document, SHAPE, environ)]


def test_a_value_of_the_file_is_overridden_and_its_neighbours_stay() -> None:
    document, issues = applied({"INGESTD__WAREHOUSE__PATH": "/other"})
    assert issues == []
    assert document.tree["warehouse"] == {"path": "/other"}
    assert document.tree["sources"] == parse_document(FILE, "f").tree["sources"]
    assert document.location_of(("warehouse", "path")) == "environment INGESTD__WAREHOUSE__PATH"


@pytest.mark.parametrize(
    ("variable", "path"),
    [
        ("INGESTD__PIPELINE__TRIGGER", ("pipeline", "trigger")),
        ("INGESTD__SOURCES__SHOP_EU__FORMAT", ("sources", "shop-eu", "format")),
        (
            "INGESTD__SOURCES__SHOP_EU__STARTUP_MODE",
            ("sources", "shop-eu", "startup-mode"),
        ),
        (
            "INGESTD__SOURCES__SHOP_EU__MAX_OFFSETS_PER_TRIGGER",
            ("sources", "shop-eu", "max-offsets-per-trigger"),
        ),
        (
            "INGESTD__SOURCES__SHOP_EU__KAFKA__SASL_PASSWORD",
            ("sources", "shop-eu", "kafka", "sasl.password"),
        ),
        (
            "INGESTD__SOURCES__SHOP_EU__KAFKA__CLIENT_ID",
            ("sources", "shop-eu", "kafka", "client.id"),
        ),
        (
            "INGESTD__DEFAULTS__OPTIONS__TARGET_FILE_SIZE",
            ("defaults", "options", "target-file-size"),
        ),
        ("INGESTD__DEFAULTS__OPTIONS__file.format", ("defaults", "options", "file.format")),
        ("INGESTD__TABLES__ORDERS__OPTIONS__BUCKET", ("tables", "Orders", "options", "bucket")),
        (
            "INGESTD__TABLES__ORDERS__SCHEMA__COLUMN_TYPES__PRICE",
            ("tables", "Orders", "schema", "column-types", "price"),
        ),
        ("INGESTD__SOURCES__NEW__FORMAT", ("sources", "new", "format")),
    ],
)
def test_variables_find_their_keys(variable: str, path: tuple[str, ...]) -> None:
    document, issues = applied({variable: "value"})
    assert issues == []
    tree: object = document.tree
    for part in path:
        assert isinstance(tree, dict)
        tree = tree[part]
    assert tree == "value"
    assert document.location_of(path) == f"environment {variable}"


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("INGESTD__COMIT__INTERVAL", "unknown key 'COMIT'"),
        ("INGESTD__PIPELINE__TRIGER", "unknown key 'TRIGER'; did you mean 'trigger'?"),
        ("INGESTD__SOURCES__SHOP_EU__FROMAT", "did you mean 'format'?"),
        ("INGESTD__PIPELINE__TRIGGER__X", "pipeline.trigger is a single value"),
        ("INGESTD__PIPELINE", "a JSON object"),
        ("INGESTD__DEFAULTS__OPTIONS__SOME_THING", "${env:NAME}"),
        ("INGESTD__", "unknown key ''"),
    ],
)
def test_a_variable_that_names_nothing_is_a_fault(variable: str, message: str) -> None:
    document, issues = applied({variable: "5s"})
    assert len(issues) == 1
    assert issues[0].startswith(f"environment {variable}: ")
    assert message in issues[0]
    assert document.tree == parse_document(FILE, "f").tree


def test_other_variables_are_nobody_s_business() -> None:
    _, issues = applied({"INGESTD_HOME": "x", "PATH": "y", "XINGESTD__A": "z"})
    assert issues == []


def test_a_section_may_be_given_as_json_and_is_merged() -> None:
    text = '{"bucket": 8, "write-only": true, "note": null}'
    document, issues = applied({"INGESTD__TABLES__ORDERS__OPTIONS": text})
    assert issues == []
    orders = document.tree["tables"]
    assert orders == {"Orders": {"options": {"bucket": "8", "write-only": "true", "note": None}}}


def test_a_name_that_may_be_two_is_a_fault() -> None:
    document = parse_document("tables: {a-b: {}, a_b: {}}", "f")
    issues = apply_environment(document, SHAPE, {"INGESTD__TABLES__A_B__PRIMARY_KEYS": "id"})
    assert "may be any of a-b, a_b" in str(issues[0])
