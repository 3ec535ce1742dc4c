"""The entry of a table in a REST catalog, of a server that answers by script."""

from dataclasses import replace
from typing import Any

import pytest

from ingestd.errors import ConfigError, StorageError
from ingestd.paimon.iceberg.iceberg_sync import repair_iceberg, sync_iceberg, update_iceberg
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import native_table, put
from tests.support.scripted_http import Reply, ScriptedServer, SignalRequests

FOLDER = "/w/iceberg/db/t/metadata"
TABLE = "/v1/lake/namespaces/db/tables/t"
CONFIG = Reply(200, {"defaults": {}, "overrides": {"prefix": "lake"}})
MISSING = Reply(404, {"error": {"message": "no such table", "type": "NoSuchTableException"}})
TAKEN = Reply(409, {"error": {"message": "requirement failed"}})
STAGED = Reply(200, {"metadata": {"location": "/c/t", "table-uuid": "u"}})
OK = Reply(200, {})


def new_table(server: ScriptedServer, **more: str) -> FileStoreTable:
    options = {
        "metadata.iceberg.storage": "rest-catalog",
        "metadata.iceberg.rest.uri": server.uri,
        "metadata.iceberg.rest.token": "a token",
        "metadata.iceberg.rest.header.X-Who": "me",
        "bucket": "-1",
        **more,
    }
    table = native_table("/w", [("id", "INT")], options=options, io=MemoryFileIO())
    put(table, [{"id": 1}])
    return table


class Catalog:
    """Creates the table of which it is sent the updates, and answers with it later."""

    def __init__(self) -> None:
        self.table: dict[str, Any] = {"table-uuid": "u", "default-spec-id": 0, "schemas": []}

    def created(self, asked: SignalRequests) -> Reply:
        for update in asked.document["updates"]:
            if update["action"] == "add-schema":
                self.table["schemas"].append(update["schema"])
            if update["action"] == "add-spec":
                self.table["partition-specs"] = [update["spec"]]
            if update["action"] == "add-snapshot":
                self.table["snapshots"] = [update["snapshot"]]
        self.table |= {
            "format-version": 2, "current-schema-id": 1, "last-sequence-number": 1,
            "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
        }  # fmt: skip
        return OK

    def loaded(self, _: SignalRequests) -> Reply:
        return Reply(200, {"metadata": self.table})


def asked(server: ScriptedServer) -> list[tuple[str, str]]:
    return [(request.method, request.path) for request in server.asked]


def test_a_table_and_its_namespace_are_created_in_one_step_and_then_updated() -> None:
    catalog = Catalog()
    script = [CONFIG, MISSING, MISSING, OK, STAGED, catalog.created, catalog.loaded, OK]
    with ScriptedServer(script) as server:
        table = new_table(server)
        sync_iceberg(table)
        put(table, [{"id": 2}])
        sync_iceberg(table)
    assert asked(server) == [
        ("GET", "/v1/config"),
        ("GET", TABLE),
        ("GET", "/v1/lake/namespaces/db"),
        ("POST", "/v1/lake/namespaces"),
        ("POST", "/v1/lake/namespaces/db/tables"),
        ("POST", TABLE),
        ("GET", TABLE),
        ("POST", TABLE),
    ]
    assert {request.headers["authorization"] for request in server.asked} == {"Bearer a token"}
    assert {request.headers["x-who"] for request in server.asked} == {"me"}
    assert server.asked[5].document["requirements"] == [{"type": "assert-create"}]
    assert server.asked[7].document["requirements"] == [
        {"type": "assert-table-uuid", "uuid": "u"},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1},
        {"type": "assert-current-schema-id", "current-schema-id": 1},
    ]


@pytest.mark.parametrize("reply", [Reply(503), Reply(500), Reply(403), Reply(404), None])
def test_a_catalog_that_fails_is_asked_once_and_loses_no_file(reply: Reply | None) -> None:
    catalog = Catalog()
    with ScriptedServer([reply, CONFIG, MISSING, OK, STAGED, catalog.created]) as server:
        table = new_table(server)
        assert not update_iceberg(table)
        assert len(server.asked) == 1
        assert table.io.exists(f"{FOLDER}/v1.metadata.json")
        assert not repair_iceberg(table).restarted
    assert catalog.table["snapshots"][0]["snapshot-id"] == 1


def test_an_answer_that_is_not_of_a_catalog_is_an_error_that_says_so() -> None:
    with (
        ScriptedServer([CONFIG, Reply(200, {"metadata": {}})]) as server,
        pytest.raises(StorageError, match=r"db\.t is not that of an Iceberg REST catalog"),
    ):
        sync_iceberg(new_table(server))


def test_a_catalog_that_others_change_all_the_time_is_left_to_the_next_commit() -> None:
    script = [CONFIG, *([MISSING, OK, TAKEN] * 3)]
    with (
        ScriptedServer(script) as server,
        pytest.raises(StorageError, match="changed by others in all 3 attempts"),
    ):
        sync_iceberg(new_table(server))


def test_a_slower_process_leaves_a_later_version_in_the_catalog() -> None:
    catalog = Catalog()
    with ScriptedServer([CONFIG, MISSING, OK, STAGED, catalog.created]) as server:
        table = new_table(server)
        sync_iceberg(table)
    later: list[FileStoreTable] = []

    def overtaken(_: SignalRequests) -> Reply:
        """Another process commits, and registers its version, before the answer arrives."""
        away = {**table.schema.options, "metadata.iceberg.storage": "hadoop-catalog"}
        put(later[0], [{"id": 3}])
        sync_iceberg(later[0].with_schema(replace(later[0].schema, options=away)))
        catalog.table |= {"last-sequence-number": 3}
        catalog.table["snapshots"] = [
            {"snapshot-id": 3, "sequence-number": 3, "manifest-list": f"{FOLDER}/other"}
        ]
        return Reply(200, {"metadata": catalog.table})

    with ScriptedServer([CONFIG, overtaken]) as server:
        options = {**table.schema.options, "metadata.iceberg.rest.uri": server.uri}
        slow = table.with_schema(replace(table.schema, options=options))
        later.append(slow)
        put(slow, [{"id": 2}])
        with pytest.raises(StorageError):  # version 3 differs in this script, whose end is reached
            sync_iceberg(slow)
    assert [method for method, _ in asked(server)] == ["GET", "GET", "GET"], "nothing is dropped"


def test_a_table_that_was_not_made_from_this_one_is_never_touched() -> None:
    foreign = {
        "table-uuid": "u", "schemas": [], "format-version": 2,
        "snapshots": [{"snapshot-id": 1, "manifest-list": "/elsewhere/metadata/snap.avro"}],
    }  # fmt: skip
    with ScriptedServer([CONFIG, Reply(200, {"metadata": foreign})]) as server:
        table = new_table(server)
        with pytest.raises(ConfigError, match=f"not made from {FOLDER}: drop it there"):
            sync_iceberg(table)
    assert {method for method, _ in asked(server)} == {"GET"}
