"""Scalars of JSON texts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.expression import read_expression
from ingestd.ingest.computed.expressions.json_texts import scalar_at
from tests.support.sql_values import values

TEXT = r'{"a": {"b": [1.50, "x\u00e9", 12345678901234567890123]}, "a b": true, "n": null, "": "e"}'
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("$.a.b[0]", "1.50"),
        ("$.a.b[1]", "xé"),
        ("$.a.b[2]", "12345678901234567890123"),
        ("$.a.b[3]", None),
        ('$."a b"', "true"),
        ('$.""', "e"),
        ("$.n", None),
        ("$.a", None),
        ("$.a[0]", None),
        ("$.x.y", None),
        ("$", None),
    ],
)
def test_a_path_leads_to_a_scalar_or_null(path: str, wanted: str | None) -> None:
    columns = {"s": ("STRING", [TEXT, None, "", "{bad", f"{TEXT} x", TEXT])}
    assert values(f"json_value(s, '{path}')", columns) == [wanted, *[None] * 4, wanted]


def test_a_text_that_is_a_scalar_is_its_value() -> None:
    columns = {"s": ("STRING", ['"a"', " 1e5 ", "[1]", "null"])}
    assert values("json_value(s, '$')", columns) == ["a", "1e5", None, None]


@given(NESTED, st.lists(st.sampled_from(["a", "b", 0, 1]), max_size=3))
def test_it_finds_what_a_plain_walk_finds(document: Any, path: list[str | int]) -> None:
    found = document
    for step in path:
        try:
            found = found[step] if isinstance(found, dict if step in ("a", "b") else list) else None
        except (KeyError, IndexError):
            found = None
    if isinstance(found, (dict, list)):
        found = None
    expected = found if found is None or isinstance(found, str) else json.dumps(found)
    assert scalar_at(json.dumps(document).encode(), tuple(path)) == expected


@pytest.mark.parametrize(
    "path", ["a", "$a", "$.*", "$..a", "$.a[*]", "strict $.a", "$[?(@.a)]", "$."]
)
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="is not like"):
        read_expression(f"json_value(s, '{path}')")


def test_a_name_that_is_no_json_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="in the path of json_value"):
        read_expression(r"""json_value(s, '$."\q"')""")
