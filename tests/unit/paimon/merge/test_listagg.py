"""listagg."""

from typing import Any

import pytest

from tests.support.merges import aggregate


@pytest.mark.parametrize(
    ("cells", "options", "value"),
    [
        (["a", None, "", "b"], {}, "a,b"),
        (["", None], {}, ""),
        ([None, None], {}, None),
        (["a", "b"], {"delimiter": " | "}, "a | b"),
        (["a,a", "b,a,,c", "c"], {"distinct": True}, "a,a,b,c"),
        (["a b", "b c"], {"distinct": True, "delimiter": " "}, "a b c"),
        (["a b", "b c"], {"distinct": True, "delimiter": ""}, "a bc"),
    ],
)
def test_the_text_of_a_key(cells: list[Any], options: dict[str, Any], value: str | None) -> None:
    assert aggregate("listagg", "STRING", cells, **options) == value
