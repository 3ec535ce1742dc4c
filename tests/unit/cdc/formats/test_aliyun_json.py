"""Messages of DataWorks without a row; rows are among the layouts."""

import json
from typing import Any

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, SourceTable, load_data_format
from tests.support.registered import chunk_of

SOURCE = {"dbType": "mysql", "dbName": "inv", "schemaName": None, "tableName": "item"}


def decode(op: str, **more: Any) -> Decoded:
    schema = {"dataColumn": None, "primaryKey": None, "source": SOURCE}
    payload = {"before": None, "after": None, "op": op, "sequenceId": "7", "ddl": None}
    message = {"schema": schema, "payload": payload | more, "version": "0.0.1"}
    decoder = load_data_format("aliyun-json", FormatSettings())
    return decoder.decode(chunk_of([json.dumps(message).encode()]), {}, {})


@pytest.mark.parametrize("ddl", [None, "", "TRUNCATE TABLE item"])
def test_a_truncate_empties_its_table_at_its_place_in_the_log(ddl: str | None) -> None:
    decoded = decode("TRUNCATE", ddl=ddl)
    [truncate] = decoded.truncates
    assert (truncate.source, truncate.position) == (SourceTable("inv", None, "item"), 7)
    assert (decoded.control, decoded.rejected) == (0, [])


@pytest.mark.parametrize(
    "op",
    [
        *("TRANSACTION_BEGIN", "TRANSACTION_END", "XACOMMIT", "XAROLLBACK", "GTID", "MHEARTBEAT"),
        *("CREATE", "ALTER", "ERASE", "RENAME", "CINDEX", "DINDEX", "QUERY"),
    ],
)
def test_messages_without_a_row_are_control_messages(op: str) -> None:
    decoded = decode(op)
    assert (decoded.control, decoded.rejected, decoded.truncates) == (1, [], [])


def test_a_heartbeat_needs_no_schema() -> None:
    decoder = load_data_format("aliyun-json", FormatSettings())
    decoded = decoder.decode(chunk_of([b'{"payload":{"op":"MHEARTBEAT"}}']), {}, {})
    assert (decoded.control, decoded.rejected) == (1, [])


@pytest.mark.parametrize("op", ["REPLACE", "INSERT"])
def test_other_messages_without_a_row_are_refused(op: str) -> None:
    [record] = decode(op).rejected
    assert record.stage == "decode"
