"""The native extension as tables use it, and how they go on without."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pyarrow as pa
import pytest

from ingestd.paimon.spec.extension import native_columns, text_parts


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    native_columns.cache_clear()
    yield
    native_columns.cache_clear()


def test_an_extension_of_another_version_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType("ingestd_native")
    monkeypatch.setitem(sys.modules, "ingestd_native", other)
    assert native_columns() is None
    native_columns.cache_clear()
    other.__dict__["COLUMNS_FORMAT"] = 2
    assert native_columns() is other


def test_without_the_extension_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ingestd_native", None)
    assert native_columns() is None


def test_parts_of_a_slice_begin_at_its_first_row() -> None:
    parts = text_parts(pa.array(["a", None, "bcd", "ef"]).slice(1, 2))
    assert parts is not None
    offsets, data, validity, first = parts
    assert (offsets.tolist(), data.tobytes()[:4], first) == ([0, 1, 1, 4], b"abcd", 1)
    assert validity is not None
    assert (validity[0] >> first) & 0b11 == 0b10


@pytest.mark.parametrize("array", [pa.array([1]), pa.array([], pa.string())])
def test_numbers_and_no_rows_have_no_parts(array: pa.Array) -> None:  # type: ignore[type-arg]  # of any
    assert text_parts(array) is None
