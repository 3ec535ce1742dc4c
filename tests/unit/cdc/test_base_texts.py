"""Texts in memory answer as the list of the same texts does, and outlive what they are of."""

import copy
import gc
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import Texts, bytes_of, has_no_nulls, joined, picked, present_indices

native: Any = pytest.importorskip("ingestd_native")
LISTS = st.lists(st.none() | st.binary(max_size=6), max_size=12)
SOME: list[bytes | None] = [b"one", None, b"", b"four"]


def both(texts: list[bytes | None]) -> tuple[Texts, Texts]:
    return texts, native.Texts(texts)


@settings(deadline=None)
@given(LISTS, st.slices(12))
def test_they_are_the_sequence_that_the_list_is(texts: list[bytes | None], part: slice) -> None:
    found = native.Texts(texts)
    assert list(found) == texts
    assert len(found) == len(texts)
    assert bool(found) is bool(texts)
    assert list(found[part]) == texts[part]
    assert list(reversed(found)) == texts[::-1]
    for text in (None, b"", b"x", *texts):
        assert found.count(text) == texts.count(text)
        assert (text in found) is (text in texts)
    assert [found[index] for index in range(-len(texts), len(texts))] == texts * 2


@settings(deadline=None)
@given(LISTS, st.lists(st.integers(0, 11), max_size=5), st.lists(LISTS, max_size=4))
def test_what_is_asked_of_all_has_the_answer_of_the_list(
    texts: list[bytes | None], places: list[int], parts: list[list[bytes | None]]
) -> None:
    listed, found = both(texts)
    assert has_no_nulls(found) is has_no_nulls(listed) is (None not in texts)
    assert bytes_of(found) == bytes_of(listed) == len(b"".join(text or b"" for text in texts))
    for empty in (True, False):
        assert (
            present_indices(found, empty=empty).tolist()
            == present_indices(listed, empty=empty).tolist()
        )
    chosen = np.array([place for place in places if place < len(texts)], np.int64)
    assert list(picked(found, chosen)) == picked(listed, chosen)
    several = [texts, *parts]
    assert list(joined([native.Texts(part) for part in several])) == joined(several)


@settings(deadline=None)
@given(st.lists(LISTS, min_size=1, max_size=4), st.slices(20), st.slices(20))
def test_parts_of_joined_parts_outlive_what_they_are_of(
    parts: list[list[bytes | None]], first: slice, second: slice
) -> None:
    expected = [text for part in parts for text in part][first][second]
    part = joined([native.Texts(part) for part in parts])[first][second]
    gc.collect(0)
    assert list(part) == expected


def test_they_are_equal_to_a_list_of_the_same_texts() -> None:
    found = native.Texts(SOME)
    assert found == SOME
    assert found == native.Texts(SOME)
    assert found != native.Texts(SOME[1:])
    assert found != [b"one", None, None, b"four"]
    assert found != SOME[:3]
    assert found != "one"


@pytest.mark.parametrize("place", [4, -5, 1 << 40])
def test_an_index_after_the_end_is_an_index_error(place: int) -> None:
    with pytest.raises(IndexError):
        native.Texts(SOME)[place]
    with pytest.raises(IndexError):
        native.Texts(SOME).take(np.array([place], np.int64))


def test_copies_and_pickles_of_them_are_lists() -> None:
    found = native.Texts(SOME)
    assert pickle.loads(pickle.dumps(found)) == SOME
    assert isinstance(copy.deepcopy(found), list)


def test_arrow_takes_them_as_it_takes_a_list() -> None:
    assert pa.array(native.Texts(SOME), pa.binary()).to_pylist() == SOME


def test_a_missing_text_cannot_be_read() -> None:
    plan = native.Plan(("object", False, False, []))
    assert plan.read(native.Texts([b"{}", b"{}"]), b"", b"")[()].seen == 2
    with pytest.raises(TypeError, match="missing"):
        plan.read(native.Texts([b"{}", None]), b"", b"")


@settings(deadline=None)
@given(st.lists(st.sampled_from([b'{"a":1}', b'{"a":"x"}', b"{}", b"[", b""]), max_size=5))
def test_a_plan_reads_of_them_what_it_reads_of_the_list(texts: list[bytes]) -> None:
    spec = ("object", False, False, [("a", False, ("raw",))])
    listed, found = (_read(spec, one) for one in both(list(texts)))
    assert listed == found


def _read(spec: tuple[Any, ...], texts: Sequence[bytes | None]) -> object:
    columns = native.Plan(spec).read(texts, b"", b"")
    if columns is None:
        return None
    column = columns["a",]
    return column.seen, column.nulls, bytes(column.offsets), bytes(column.data)
