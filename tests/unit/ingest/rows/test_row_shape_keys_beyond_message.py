"""Updates that change the primary key of a table while the message key stays the same."""

import json
from typing import Any

import pytest

from ingestd.cdc.base import DataFormat, FormatSettings, shared_data_format
from ingestd.ingest.rows.blobs import KIND
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.stages import decode_stage
from ingestd.ingest.stages.decode_stage import shape_again
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.spec.data_types import RowKind
from tests.support.ingest_rig import DEAD_LETTERS, Rig

BY_MAIL = TableSettings(primary_keys=("mail",), options={"bucket": "1"})
ANNE = {"id": 1, "mail": "anne@a", "n": 1}
MOVED = {"id": 1, "mail": "anne@b", "n": 2}
Row = dict[str, Any]


def debezium(before: Row | None, after: Row | None) -> bytes:
    operation = "u" if before and after else "d" if before else "c"
    source = {"db": "shop", "table": "orders"}
    event = {"before": before, "after": after, "op": operation, "source": source, "ts_ms": 1}
    return json.dumps(event).encode()


def canal(before: Row | None, after: Row | None) -> bytes:
    kind = "UPDATE" if before and after else "DELETE" if before else "INSERT"
    changed = {} if not (before and after) else {k: v for k, v in before.items() if v != after[k]}
    event = {
        "database": "shop", "table": "orders", "type": kind, "isDdl": False, "pkNames": ["id"],
        "data": [after or before], "old": [changed] if kind == "UPDATE" else None, "es": 1, "ts": 1,
        "mysqlType": {"id": "int", "mail": "varchar(20)", "n": "int"},
    }  # fmt: skip
    return json.dumps(event).encode()


def maxwell(before: Row | None, after: Row | None) -> bytes:
    kind = "update" if before and after else "delete" if before else "insert"
    changed = {} if not (before and after) else {k: v for k, v in before.items() if v != after[k]}
    event = {
        "database": "shop", "table": "orders", "type": kind, "ts": 1, "data": after or before,
        "old": changed, "primary_key_columns": ["id"], "primary_key": [1],
    }  # fmt: skip
    return json.dumps(event).encode()


FORMATS = {"debezium-json": debezium, "canal-json": canal, "maxwell-json": maxwell}


def table_of(rig: Rig) -> list[tuple[str, int]]:
    assert rig.rows(DEAD_LETTERS.partition(".")[2]) == []
    return [(row["mail"], int(row["n"])) for row in rig.rows("orders")]


@pytest.mark.parametrize("key", [b'{"id": 1}', None], ids=["key", "keyless"])
@pytest.mark.parametrize("data_format", FORMATS)
def test_the_row_under_the_old_key_is_deleted(data_format: str, key: bytes | None) -> None:
    change = FORMATS[data_format]
    rig = Rig(settings={"orders": BY_MAIL}, data_format=data_format, key=key)
    rig.produce(change(None, ANNE), change(ANNE, {**ANNE, "n": 3}))
    rig.run()
    assert table_of(rig) == [("anne@a", 3)]
    rig.produce(change({**ANNE, "n": 3}, MOVED))
    rig.run()
    assert table_of(rig) == [("anne@b", 2)]
    rig.produce(change(MOVED, {**MOVED, "n": 4}), change({**MOVED, "n": 4}, None))
    rig.run()
    assert table_of(rig) == []


def test_a_key_that_moves_in_one_batch_leaves_one_row() -> None:
    rig = Rig(settings={"orders": BY_MAIL}, data_format="debezium-json", key=b'{"id": 1}')
    rig.produce(debezium(None, ANNE))
    rig.run()
    rig.produce(debezium(ANNE, MOVED), debezium(MOVED, ANNE), debezium(ANNE, MOVED))
    rig.run()
    assert table_of(rig) == [("anne@b", 2)]


def test_rows_that_are_read_again_have_the_old_key_as_well() -> None:
    rig = Rig(settings={"orders": BY_MAIL}, data_format="debezium-json", key=b'{"id": 1}')
    rig.produce(debezium(None, ANNE), debezium(ANNE, MOVED))
    rig.run()
    chunks = list(rig.fetch(KafkaSource("src", ("orders",)), OffsetRange("src", "orders", 0, 0, 2)))
    (shaped,) = shape_again(rig.context(), "src", [*chunks])
    assert shaped.rows is not None
    rows = shaped.rows.select(["mail", KIND]).to_pylist()
    kinds = [(row["mail"], RowKind(row[KIND]).symbol) for row in rows]
    assert kinds == [("anne@a", "+I"), ("anne@a", "-D"), ("anne@b", "+U")]


def test_updates_without_a_before_image_are_counted() -> None:
    rig = Rig(settings={"orders": BY_MAIL}, data_format="debezium-json", key=b'{"id": 1}')
    rig.produce(debezium(None, ANNE))
    rig.run()
    update = json.loads(debezium(ANNE, MOVED)) | {"before": None}
    rig.produce(json.dumps(update).encode(), debezium(MOVED, MOVED))
    assert rig.run().counts.unknown_keys == {"lake.orders": 1}


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether before images were requested, for each call of a decoder."""
    requests: list[bool] = []

    def recording(name: str, source: str, settings: FormatSettings) -> DataFormat:
        requests.append(settings.images)
        return shared_data_format(name, source, settings)

    monkeypatch.setattr(decode_stage, "shared_data_format", recording)
    return requests


@pytest.mark.parametrize(
    "settings",
    [
        TableSettings(),
        TableSettings(primary_keys=("id",)),
        TableSettings(
            primary_keys=("id", "database_name"), shape=ShapeSettings(metadata=("database_name",))
        ),
    ],
    ids=["message-key", "declared", "metadata"],
)
def test_tables_by_the_message_key_are_decoded_without_before_images(
    settings: TableSettings, requested: list[bool]
) -> None:
    rig = Rig(settings={"orders": settings}, data_format="debezium-json", key=b'{"id": 1}')
    for _ in range(2):
        rig.produce(debezium(None, ANNE), debezium(ANNE, MOVED))
        rig.run()
    assert set(requested) == {False}


def test_inserts_are_decoded_once(requested: list[bool]) -> None:
    rig = Rig(settings={"orders": BY_MAIL}, data_format="debezium-json", key=b'{"id": 1}')
    rig.produce(debezium(None, ANNE))
    rig.run()
    assert set(requested) == {False}
    rig.produce(debezium(ANNE, MOVED))
    rig.run()
    assert requested[-2:] == [False, True]
