import pytest

from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.type_casts import can_cast


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INT", "INT NOT NULL"), ("TINYINT", "BIGINT"), ("INT", "DOUBLE"),
        ("INT", "DECIMAL(10, 2)"),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)"), ("FLOAT", "DOUBLE"), ("VARCHAR(5)", "STRING"),
        ("CHAR(5)", "VARCHAR(9)"), ("BINARY(4)", "BYTES"), ("TIMESTAMP(3)", "TIMESTAMP(6)"),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"), ("DECIMAL(5, 0)", "FLOAT"),
    ],
)  # fmt: skip
def test_widening_casts_need_nobody_to_ask_for_them(old: str, new: str) -> None:
    assert can_cast(parse_type(old), parse_type(new), explicit=False)
    assert can_cast(parse_type(old), parse_type(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BIGINT", "INT"), ("DOUBLE", "INT"), ("STRING", "INT"), ("STRING", "BOOLEAN"),
        ("STRING", "DATE"), ("STRING", "TIMESTAMP(6)"), ("INT", "STRING"), ("DATE", "STRING"),
        ("BOOLEAN", "INT"), ("INT", "BOOLEAN"), ("TIMESTAMP(6)", "BIGINT"),
        ("DATE", "TIMESTAMP(3)"),
        ("STRING", "BYTES"), ("BYTES", "STRING"), ("BIGINT", "TIMESTAMP(3)"),
    ],
)  # fmt: skip
def test_lossy_casts_have_to_be_asked_for(old: str, new: str) -> None:
    assert can_cast(parse_type(old), parse_type(new))
    assert not can_cast(parse_type(old), parse_type(new), explicit=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INT", "DATE"), ("DATE", "INT"), ("BOOLEAN", "DATE"), ("DATE", "VARCHAR(10)"),
        ("INT", "BYTES"), ("TIMESTAMP(3)", "DECIMAL(20, 0)"), ("TIME(0)", "TIME(3)"),
        ("DOUBLE", "BOOLEAN"), ("DOUBLE", "TIMESTAMP(3)"), ("INT", "VARIANT"), ("BLOB", "STRING"),
        ("TINYINT", "TIMESTAMP(3)"), ("SMALLINT", "TIMESTAMP_LTZ(6)"),
    ],
)  # fmt: skip
def test_casts_that_java_does_not_know_are_refused(old: str, new: str) -> None:
    assert not can_cast(parse_type(old), parse_type(new))
