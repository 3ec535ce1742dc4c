import pytest

from ingestd.cdc.columns import raw_cells


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'"BQ=="', "0.00000005"),
        (b'"AA=="', "0.00000000"),
        (b'"+w=="', "-0.00000005"),
        (b'{"scale":8,"value":"BQ=="}', "0.00000005"),
        (b"5E-8", "5E-8"),
        (b"null", None),
    ],
)
def test_unscaled_integers_are_texts_without_an_exponent(raw: bytes, text: str | None) -> None:
    assert raw_cells.number_text_cell(raw, 8, base64=True) == text
