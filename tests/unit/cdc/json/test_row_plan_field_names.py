"""Messages whose fields have names that the decoder of JSON cannot be given."""

import json
from itertools import product

import msgspec
import pytest

from ingestd.cdc.json.row_plan import (
    escape_field_names,
    escape_image_names,
    escaped_name,
    has_plain_name,
    with_own_names,
)

ODD = ['a"b', "a\\b", "a\nb", "a\x00b", "a\x1fb", "a\x7fb"]


@pytest.mark.parametrize("name", ODD)
def test_a_stand_in_is_a_name_that_fields_can_have(name: str) -> None:
    assert not has_plain_name(name)
    form = msgspec.defstruct("Form", [("a", int)], rename={"a": escaped_name(name)})
    read = msgspec.json.decode(escape_field_names(json.dumps({name: 1}).encode()), type=form)
    assert read.a == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["a", "a b", "ä", "a`b", "a'b", "\x80", "{}", "a.b"])
def test_a_plain_name_stays(name: str) -> None:
    assert has_plain_name(name)
    assert escaped_name(name) == name


def test_no_two_names_have_one_escaped_name() -> None:
    names = {"".join(parts) for parts in product(['"', "\x7f", "2", "7f", "\\"], repeat=4)}
    assert len(set(map(escaped_name, names))) == len(names)


def test_values_stay_as_they_are_written() -> None:
    message = b'{"a\\"b": 1.50, "c" :"\\u0061\\n", "d":{"e\\"f":1}}'
    assert escape_field_names(message) == b'{"a\x7f22b":1.50,"c":"\\u0061\\n","d":{"e\\"f":1}}'


def test_only_images_are_restated() -> None:
    message = b'{"x\\"": 1, "before":null, "after": {"y\\"": {"z\\"": 2}}}'
    assert escape_image_names(message) == (
        b'{"x\\"":1,"before":null,"after":{"y\x7f22":{"z\\"": 2}}}'
    )


@pytest.mark.parametrize("message", [b'{"a":1}', b'{"after":{"a":"b"}}', b"[]", b"{"])
def test_a_message_without_odd_names_is_not_touched(message: bytes) -> None:
    assert escape_field_names(message) is message
    assert escape_image_names(message) is message


@pytest.mark.parametrize("message", [b'{"\\"": ', b'["\\""]', b'"\\""'])
def test_what_is_no_object_is_refused(message: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        escape_field_names(message)
    with pytest.raises(msgspec.MsgspecError):
        escape_image_names(message)


def test_errors_show_the_own_names() -> None:
    form = msgspec.defstruct("Form", [("a", int)], rename={"a": escaped_name('a"b')})
    decode = with_own_names(msgspec.json.Decoder(form).decode)
    with pytest.raises(msgspec.ValidationError, match=r'`\$\.a"b`'):
        decode(escape_field_names(b'{"a\\"b": "x"}'))
