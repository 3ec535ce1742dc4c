"""Java reads the comments that a table takes from its source, and the table keeps Java's."""

from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.table.metadata.schema_manager import read_schema
from tests.support.ingest_rig import Rig
from tests.support.json_changes import Change, JsonChanges, documented, record
from tests.support.oracle import Oracle


@pytest.fixture(autouse=True)
def json_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = JsonChanges()
    monkeypatch.setattr("ingestd.ingest.stages.decode_stage.shared_data_format", lambda *_: shared)


def as_java_sees(oracle: Oracle, rig: Rig, warehouse: Path) -> tuple[Any, dict[str, Any]]:
    """The comments of the table and its columns, after its files are copied to a warehouse."""
    for path, data in rig.io.files.items():
        if path.startswith("/warehouse/lake.orders/"):
            file = warehouse / "lake.db" / "orders" / path.removeprefix("/warehouse/lake.orders/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    schemas = oracle.inspect(warehouse, "lake", "orders")["schemas"]
    schema = max(schemas, key=lambda schema: int(schema["id"]))
    return schema.get("comment"), {
        field["name"]: field.get("description") for field in schema["fields"]
    }


def test_java_sees_the_comments(oracle: Oracle, tmp_path: Path) -> None:
    rig = Rig()
    row = record(Change({"id": 1, "n": 2}))
    rig.produce(documented("all orders", n='amount: \u00e4 "quoted"'), row)
    rig.run()
    first = as_java_sees(oracle, rig, tmp_path)
    assert first == ("all orders", {"id": None, "n": 'amount: \u00e4 "quoted"'})
    rig.produce(documented("orders", id="number", n="sum"), row)
    rig.run()
    assert as_java_sees(oracle, rig, tmp_path) == ("orders", {"id": "number", "n": "sum"})


def test_a_comment_that_java_sets_stays(oracle: Oracle, tmp_path: Path) -> None:
    rig = Rig()
    row = record(Change({"id": 1, "n": 2}))
    rig.produce(documented("orders", id="number", n="amount"), row)
    rig.run()
    as_java_sees(oracle, rig, tmp_path)
    steps = [{"alter": [{"op": "comment", "name": "n", "value": "by Java"}]}]
    spec = {"database": "lake", "table": "orders", "existing": True, "steps": steps}
    oracle.write_spec(spec, tmp_path, tmp_path)
    changed = tmp_path / "lake.db" / "orders" / "schema" / "schema-1"
    rig.io.files["/warehouse/lake.orders/schema/schema-1"] = changed.read_bytes()
    table = rig.tables["lake.orders"]
    rig.tables["lake.orders"] = table.with_schema(read_schema(rig.io, table.paths, 1))
    rig.produce(documented("all orders", id="key", n="sum"), row)
    rig.run()
    expected = {"id": "key", "n": "by Java"}
    assert as_java_sees(oracle, rig, tmp_path) == ("all orders", expected)
