"""Reason codes that hang on the words of a library's error: the library itself is asked."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from ingestd.cdc.record_errors import BUILD_ERRORS, PARSE_ERRORS, explain, explain_cell


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    id: int = 0


class _Event(msgspec.Struct):
    after: _Row | None = None


def _parse_error(text: bytes, wanted: type = _Event) -> Exception:
    with pytest.raises(PARSE_ERRORS) as raised:
        msgspec.json.decode(text, type=wanted)
    return raised.value


@pytest.mark.parametrize(
    ("text", "wanted", "stage", "reason"),
    [
        (b'{"after":{"id":"x"}}', _Event, "decode", ("cast", "wrong_type", "column id: Expected")),
        (b'{"id":"x"}', _Row, "key", ("key", "wrong_type", "key column id: Expected")),
        (b'{"after":{"more":1}}', _Event, "decode",
         ("decode", "unknown_column", "the message value has the field 'more'")),
        (b"[1]", _Event, "decode", ("decode", "wrong_type", "the message value is not a change")),
        (b"{", _Event, "decode", ("decode", "invalid_json", "the message value is not JSON")),
        (b'{"after":{"id":' + b"[" * 9999, _Event, "decode", None),
    ],
)  # fmt: skip
def test_what_the_json_parser_says_is_understood(
    text: bytes, wanted: type, stage: str, reason: tuple[str, str, str] | None
) -> None:
    found = explain(_parse_error(text, wanted), "message value", stage)
    if reason is None:
        assert found.code in {"too_deep", "wrong_type"}
        return
    assert (found.stage, found.code) == reason[:2]
    assert found.message.startswith(reason[2])
    assert "`$" not in found.message or found.code == "wrong_type"


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda: pa.array([300], pa.int8()), "out_of_range"),
        (lambda: pa.array([2**40], pa.int32()), "out_of_range"),
        (lambda: pa.array([2**70], pa.int64()), "out_of_range"),
        (lambda: pa.array([2**40]).cast(pa.int32()), "out_of_range"),
        (lambda: pa.array([Decimal("12345.6")], pa.decimal128(4, 1)), "out_of_range"),
        (lambda: pa.array([Decimal("123456")], pa.decimal128(4, 1)), "out_of_range"),
        (lambda: pa.array(["x"], pa.int32()), "wrong_type"),
        (lambda: pa.array([{}], pa.string()), "wrong_type"),
    ],
)
def test_what_arrow_says_of_a_value_is_understood(build: Callable[[], Any], code: str) -> None:
    with pytest.raises(BUILD_ERRORS) as raised:
        build()
    assert explain_cell(raised.value, "c", 1, "INT").code == code
