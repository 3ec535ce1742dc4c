"""Which tables have a native plan at all."""

import pytest

from ingestd.cdc.base import SourceTable
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.json.row_plan import make_plan
from ingestd.cdc.native_module import native_module
from ingestd.paimon.spec.data_types import DataType

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)


def has_native_plan(root: str, table: str = "t", **more: int) -> bool:
    column = WireColumn("k", DataType(root, **more))
    source = SourceTable("db", None, table)
    return make_plan(source, {"k": column}, {}, ("k",), native_module()).native is not None


@pytest.mark.parametrize("root", ["INT", "STRING", "BYTES", "BOOLEAN", "DATE"])
def test_keys_with_one_text_for_each_value_are_compared_natively(root: str) -> None:
    assert has_native_plan(root)


def test_keys_that_lose_digits_or_have_many_texts_are_compared_in_python() -> None:
    assert not has_native_plan("DOUBLE")
    assert not has_native_plan("TIME", precision=6)
    assert has_native_plan("TIME", precision=3)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb"])
def test_names_that_json_has_to_escape_are_compared_in_python(name: str) -> None:
    assert not has_native_plan("INT", name)


def test_without_the_extension_there_is_no_native_plan() -> None:
    column = WireColumn("k", DataType("INT"))
    assert make_plan(SourceTable(None, None, "t"), {"k": column}, {}, ("k",)).native is None
