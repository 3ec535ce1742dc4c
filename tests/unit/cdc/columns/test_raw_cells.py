import pytest

from ingestd.cdc.columns import raw_cells
from ingestd.paimon.spec.data_types import DataField, DataType


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


@pytest.mark.parametrize("raw", [b"true", b"[1]", b'"abc"', b'"NaN"', b'""', b'"1_0"'])
def test_a_value_that_is_no_number_is_not_the_text_of_a_decimal(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not a number"):
        raw_cells.number_text_cell(raw, 0, base64=False)


ADDRESS = DataType("ROW", fields=(DataField(0, "city", DataType("STRING")),))


@pytest.mark.parametrize(
    ("raw", "cell"),
    [
        (b'{"city":"B"}', {"city": "B"}),
        (b'{"city":"B","zip":null}', {"city": "B"}),
        (b"{}", {"city": None}),
        (b"null", None),
    ],
)
def test_a_row_has_the_fields_of_its_column(raw: bytes, cell: object) -> None:
    assert raw_cells.read_cell(raw, ADDRESS) == cell


@pytest.mark.parametrize(
    ("raw", "data_type"),
    [
        (b'{"city":"B","zip":1}', ADDRESS),
        (b'[{"city":"B"},{"zip":1}]', DataType("ARRAY", element=ADDRESS)),
        (b'{"k":{"zip":1}}', DataType("MAP", key=DataType("STRING"), value=ADDRESS)),
    ],
)
def test_a_value_of_a_field_that_the_column_lacks_is_not_lost(
    raw: bytes, data_type: DataType
) -> None:
    with pytest.raises(ValueError, match="no field 'zip'"):
        raw_cells.read_cell(raw, data_type)
