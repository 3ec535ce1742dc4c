"""Numbers of messages in columns that are declared as another DECIMAL, or as DOUBLE."""

import pytest

from ingestd.paimon.spec.data_types import parse_type
from tests.support.change_events import TABLE, chunk, field, raw_event, wrapped
from tests.support.decoded import both_decoders

TEXT = field("v", "string")
HUNDREDTHS = field(
    "v", "bytes", "org.apache.kafka.connect.data.Decimal", parameters={"scale": "2"}
)  # fmt: skip


@pytest.mark.parametrize(
    ("column", "number", "kind", "stored"),
    [
        (TEXT, '"75.72"', "DECIMAL(38, 10)", "75.7200000000"),
        (TEXT, '"72656038009350675562e9"', "DECIMAL(38, 10)", None),
        (TEXT, f'"{"4" * 37}"', "DECIMAL(38, 10)", None),
        (TEXT, '"75.72"', "DECIMAL(38, 38)", None),
        (TEXT, f'"{-(2**127)}"', "DECIMAL(38, 0)", None),
        (HUNDREDTHS, "2728028.80", "DECIMAL(38, 10)", "2728028.8000000000"),
        (HUNDREDTHS, f"{'4' * 36}.19", "DECIMAL(38, 10)", None),
        (HUNDREDTHS, '"gAAAAAAAAAAAAAAAAAAAAA=="', "DECIMAL(10, 2)", None),
        (HUNDREDTHS, "2728028.80", "DOUBLE", "2728028.8"),
        (HUNDREDTHS, '"gAAAAAAAAAAAAAAAAAAAAA=="', "DOUBLE", None),
    ],
)
def test_a_number_is_exact_or_rejected(
    column: dict[str, object], number: str, kind: str, stored: str | None
) -> None:
    message = wrapped(raw_event(f'{{"v":{number}}}'), [column])
    for decoder in both_decoders():
        found = decoder.decode(chunk([message]), {}, {TABLE: {"v": parse_type(kind)}})
        if stored is None:
            assert [record.stage for record in found.rejected] == ["cast"]
        else:
            assert [str(v) for v in found.batches[0].columns["v"].to_pylist()] == [stored]
