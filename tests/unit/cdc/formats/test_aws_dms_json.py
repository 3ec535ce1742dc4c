"""Columns whose names begin like those of DMS's before images; rows are among the samples."""

import json
from typing import Any

from ingestd.cdc.base import ChangeBatch, FormatSettings, load_data_format
from tests.support.registered import chunk_of


def batch_of(operation: str, data: dict[str, Any]) -> ChangeBatch:
    metadata = {"operation": operation, "schema-name": "s", "table-name": "t"}
    value = json.dumps({"data": data, "metadata": metadata}).encode()
    decoder = load_data_format("aws-dms-json", FormatSettings(images=True))
    [batch] = decoder.decode(chunk_of([value]), {}, {}).batches
    return batch


def test_a_column_of_the_source_with_the_prefix_is_kept() -> None:
    row = {"id": 1, "BI_total": 5}
    for operation in ("load", "insert", "update"):
        assert batch_of(operation, row).columns.to_pylist() == [row]


def test_a_before_image_is_not_a_column() -> None:
    batch = batch_of("update", {"id": 1, "v": 6, "BI_id": 1, "BI_v": 5})
    assert batch.columns.to_pylist() == [{"id": 1, "v": 5}, {"id": 1, "v": 6}]
