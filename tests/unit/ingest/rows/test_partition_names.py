"""A record whose partition no file system can name is a dead letter and stops no other."""

import json

import pytest

from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.spec.data_types import DataType
from tests.support.ingest_rig import Rig

NAMES = {"partition.legacy-name": "false"}
LONGEST = "ü" * 125 + "x"
"""The name of its directory, `p=...`, has 253 bytes."""


@pytest.mark.parametrize(
    ("data_type", "values", "bad", "problem"),
    [
        ("STRING", ["a", LONGEST, f"{LONGEST}yz", f"{LONGEST}xyz", None], [3], "of 256 bytes"),
        ("STRING", ["/" * 84, "/" * 85], [1], "of 257 bytes"),
        ("DATE", ["2024-02-29", "12024-02-29"], [1], "the year 12024"),
    ],
)
def test_a_record_whose_partition_cannot_be_named_is_a_dead_letter(
    data_type: str, values: list[str | None], bad: list[int], problem: str
) -> None:
    settings = TableSettings((), ("p",), NAMES, {"p": DataType(data_type)})
    rig = Rig(settings={"orders": settings}, data_format="json", key=None)
    rig.produce(*(json.dumps({"id": n, "p": value}).encode() for n, value in enumerate(values)))
    rig.run()
    there = sorted(row["id"] for row in rig.rows("orders"))
    assert there == [number for number in range(len(values)) if number not in bad]
    letters = rig.rows("ingestd_dead_letters")
    assert [row["offset"] for row in letters] == bad
    assert all(row["reason"] == "invalid-partition-name" for row in letters)
    assert all(problem in row["message"] for row in letters)
