"""The ways out that errors about types name, followed to the letter: the pipeline goes on."""

import json
import re

import pytest

from ingestd.errors import SchemaConflictError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.paimon.spec.data_types import DataType, parse_type
from tests.support.ingest_rig import Rig

STRING, TIME = DataType("STRING"), parse_type("TIMESTAMP(0)")
ALTER = "ALTER TABLE orders CHANGE a b VARCHAR(30)"
HEAD = {"database": "d", "table": "orders", "pkNames": ["id"]}


def row(number: int, name: str, kind: str, value: str) -> bytes:
    types = {"id": "int", name: kind}
    data = [{"id": str(number), name: value}]
    return json.dumps({**HEAD, "type": "INSERT", "data": data, "mysqlType": types}).encode()


def renamed() -> bytes:
    return json.dumps({**HEAD, "type": "ALTER", "isDdl": True, "sql": ALTER}).encode()


def settings(types: dict[str, DataType], **policy: object) -> dict[str, TableSettings]:
    evolution = EvolutionPolicy(on_refused="fail", **policy)  # type: ignore[arg-type]
    return {"orders": TableSettings(column_types=types, evolution=evolution)}


def refusal(rig: Rig) -> str:
    with pytest.raises(SchemaConflictError, match="no type holds both") as caught:
        rig.run()
    return str(caught.value)


def named_type(message: str) -> dict[str, DataType]:
    """The type that a message says to set, such as 'a: STRING'."""
    found = re.search(r"set '(\w+): (.+?)' in the table's schema\.column-types", message)
    assert found is not None, message
    return {found[1]: parse_type(found[2])}


def values(rig: Rig, name: str) -> list[object]:
    return [one[name] for one in rig.rows("orders")]


def test_a_column_of_a_table_keeps_the_type_that_the_error_names() -> None:
    rig = Rig(data_format="canal-json", settings=settings({}))
    rig.produce(row(0, "a", "datetime", "2024-01-01 00:00:00"))
    rig.run()
    rig.produce(row(1, "a", "varchar(30)", "x"), row(2, "a", "varchar(30)", "2024-01-02 00:00:00"))
    rig.settings = settings(named_type(refusal(rig)))
    rig.run()
    assert len(values(rig, "a")) == 2
    [dead_letter] = rig.rows("ingestd_dead_letters", "message")
    assert "does not fit TIMESTAMP(0)" in dead_letter["message"]


def test_a_column_of_a_new_table_gets_the_type_that_the_error_names() -> None:
    rig = Rig(data_format="canal-json", settings=settings({}))
    rig.produce(row(0, "a", "blob", "x"), row(1, "a", "int", "7"))
    rig.settings = settings(named_type(refusal(rig)))
    rig.run()
    assert values(rig, "a") == ["eA==", "7"]


@pytest.mark.parametrize(("exists", "kind", "kept"), [(False, STRING, 2), (True, TIME, 1)])
def test_both_names_of_a_renamed_column_get_one_type(
    exists: bool, kind: DataType, kept: int
) -> None:
    rig = Rig(data_format="canal-json", settings=settings({}, on_rename="rename"))
    old = row(0, "a", "datetime", "2024-01-01 00:00:00")
    if exists:
        rig.produce(old)
        rig.run()
    rig.produce(old, renamed(), row(1, "b", "varchar(30)", "x"))
    message = refusal(rig)
    if not exists:
        assert "set one type for both names in schema.column-types" in message
    rig.settings = settings({"a": kind, "b": kind}, on_rename="rename")
    rig.run()
    assert len(values(rig, "b")) == kept


@pytest.mark.parametrize(("exists", "kind", "kept"), [(False, STRING, 2), (True, TIME, 1)])
def test_the_new_name_of_an_alias_gets_the_type(exists: bool, kind: DataType, kept: int) -> None:
    rig = Rig(data_format="canal-json", settings=settings({}))
    old = row(0, "a", "datetime", "2024-01-01 00:00:00")
    if exists:
        rig.produce(old)
        rig.run()
    rig.settings = settings({}, aliases={"b": "a"})
    rig.produce(old, row(1, "b", "varchar(30)", "x"))
    refusal(rig)
    rig.settings = settings({"b": kind}, aliases={"b": "a"})
    rig.run()
    assert len(values(rig, "b")) == kept
