"""What GoldenGate's marks of missing columns mean; rows are among the samples."""

import json
from typing import Any

import pytest

from ingestd.cdc.base import FormatSettings, load_data_format
from ingestd.paimon.spec.data_types import RowKind
from tests.support.decoded import in_python
from tests.support.registered import chunk_of


def rows(after: dict[str, Any]) -> list[dict[str, Any]]:
    message = {"table": "S.T", "op_type": "I", "primary_keys": ["id"], "after": after}
    decoder = load_data_format("ogg-json", FormatSettings())
    [batch] = decoder.decode(chunk_of([json.dumps(message).encode()]), {}, {}).batches
    return batch.columns.to_pylist()


@pytest.mark.parametrize("mark", [True, False, None, "true"])
def test_a_mark_is_not_a_column(mark: object) -> None:
    kept = {} if mark is True else {"v": 5}
    assert rows({"id": 1, "v": 5, "v_isMissing": mark}) == [{"id": 1, **kept}]


@pytest.mark.parametrize("names", [("v_isMissing_isMissing", "v_isMissing"), ("v_isMissing",) * 2])
def test_a_mark_can_be_marked_itself(names: tuple[str, str]) -> None:
    assert rows({"id": 1, "v": 5, names[0]: True, names[1]: True}) == [{"id": 1}]


def test_a_column_with_a_name_like_a_mark_is_kept() -> None:
    row = {"id": 1, "part_isMissing": "left wheel"}
    assert rows(row) == [row]


def test_an_update_without_its_key_changes_the_row_of_the_key_before_it() -> None:
    """A compressed update has the changed columns; its key is in the row before."""
    message = {"table": "S.T", "op_type": "U", "primary_keys": ["id"]}
    texts = [
        json.dumps({**message, "before": {"id": 1, "v": 1}, "after": {"v": 2}}).encode(),
        json.dumps({**message, "before": {"id": 1}, "after": {"id": 2, "v": 3}}).encode(),
    ]
    for images in (False, True):
        native = load_data_format("ogg-json", FormatSettings(images=images))
        for decoder in (native, in_python(native)):
            [batch] = decoder.decode(chunk_of(texts), {}, {}).batches
            rows = list(zip(batch.row_kind.tolist(), batch.columns["id"].to_pylist(), strict=True))
            assert [row for row in rows if row[0] != RowKind.UPDATE_BEFORE] == [
                (RowKind.UPDATE_AFTER, 1),
                (RowKind.DELETE, 1),
                (RowKind.UPDATE_AFTER if images else batch.row_kind[-1], 2),
            ]
            assert "id" not in batch.unavailable
