"""How messages of a chunk are sorted by table before anybody reads their rows."""

import pytest

from ingestd.cdc.json.format_readers import Classifier, TableFields
from ingestd.cdc.native_module import native_module

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)
TABLE_FIELDS = TableFields(
    (("db",), ("in", "table")), {("type",): (b'"row"',), ("ddl",): (b"false", b"null")}
)


def sort(values: list[bytes | None]) -> list[list[int]]:
    module = native_module()
    assert module is not None
    return [found.tolist() for found in Classifier(module, TABLE_FIELDS).sort(values)]


def row(table: str, more: str = "") -> bytes:
    return f'{{"db":"d","in":{{"table":"{table}","x":[1]}},"type":"row"{more}}}'.encode()


def test_rows_are_by_table_in_the_order_of_the_first_of_each() -> None:
    assert sort([row("b"), row("a"), row("b"), row("c"), row("a")]) == [[0, 2], [1, 4], [3]]


def test_tables_differ_in_any_of_their_names() -> None:
    other = row("a").replace(b'"db":"d"', b'"db":"e"')
    assert sort([row("a"), other, row("a")]) == [[0, 2], [1]]


def test_a_name_that_is_null_is_one_that_did_not_come() -> None:
    null, absent = (row("a").replace(b'"db":"d",', new) for new in (b'"db":null,', b""))
    assert sort([null, absent, row("a")]) == [[0, 1], [2]]


@pytest.mark.parametrize(
    "irregular",
    [
        None,
        b"",
        b"null",
        b"\xff",
        b"{",
        b"[]",
        row("a").replace(b'"row"', b'"begin"'),
        row("a", ',"ddl":true'),
        row("a", ',"type":"row"'),
        row("a").replace(b'{"table":"a","x":[1]}', b"1"),
    ],
)
def test_what_is_no_row_is_left_out(irregular: bytes | None) -> None:
    assert sort([row("a"), irregular, row("b"), row("a", ',"ddl":false')]) == [[0, 3], [2]]
    assert sort([irregular]) == []


def test_no_messages_are_no_tables() -> None:
    assert sort([]) == []
    assert sort([None, None]) == []


def test_many_odd_messages_are_not_looked_for_one_by_one() -> None:
    # The first half is read before no one looks any further.
    values: list[bytes | None] = [row("a")] * 512 + [b"{"] * 512
    assert sort(values) == [list(range(512))]
    assert sort([b"{", row("a")] * 512)[0] != []
