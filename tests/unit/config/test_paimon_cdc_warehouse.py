from typing import Any

import pytest

from ingestd.config.import_notes import Note, assemble
from ingestd.config.paimon_cdc import import_warehouse


def carried(
    path: str, *, keep_secrets: bool = False, **conf: str
) -> tuple[dict[str, Any], list[Note]]:
    """The section and the notes; `_` in names stands for a dot."""
    given = {name.replace("_", "."): value for name, value in conf.items()}
    found = import_warehouse(path, "ods", given, keep_secrets=keep_secrets)
    tree, notes = assemble(found, lambda _: None)
    return tree["warehouse"], notes


@pytest.mark.parametrize(
    "path", ["/lake", "file:///lake", "s3://bucket/lake", "hdfs:///a/b", "hdfs://name:8020/a"]
)
def test_a_path_that_can_be_used_stays(path: str) -> None:
    assert carried(path, metastore="filesystem") == ({"path": path, "database": "ods"}, [])


@pytest.mark.parametrize(
    ("path", "instead"),
    [("viewfs:///a/b", "/a/b"), ("webhdfs://name:9870/a", "/a"), ("obs://bucket/a", "/a")],
)
def test_of_other_stores_the_path_is_kept_and_the_loss_is_essential(
    path: str, instead: str
) -> None:
    section, notes = carried(path)
    assert section["path"] == instead
    assert [(note.argument, note.essential) for note in notes] == [(f"--warehouse {path}", True)]


def test_a_metastore_that_is_not_supported_is_essential() -> None:
    _, notes = carried("/lake", metastore="glue", uri="thrift://h:9083")
    assert [(note.argument, note.essential) for note in notes] == [
        ("--catalog_conf metastore=glue", True),
        ("--catalog_conf uri=thrift://h:9083", False),
    ]


def test_a_catalog_server_is_taken_with_what_it_needs() -> None:
    section, notes = carried("lake", metastore="rest", uri="http://c:1", token="hunter2")
    assert section["catalog"] == {
        "metastore": "rest",
        "warehouse": "lake",
        "uri": "http://c:1",
        "token": "${env:TOKEN}",
    }
    assert section["path"].startswith("/")
    assert "hunter2" not in str(notes)


def test_a_jdbc_catalog_is_taken_with_its_options() -> None:
    conf = {"jdbc_user": "u", "jdbc_password": "hunter2", "lock_enabled": "true"}
    section, notes = carried("/lake", metastore="jdbc", uri="jdbc:sqlite:/c", **conf)
    assert section["catalog"] == {
        "metastore": "jdbc",
        "uri": "jdbc:sqlite:/c",
        "user": "u",
        "password": "${env:JDBC_PASSWORD}",
        "options": {"lock.enabled": "true"},
    }
    assert section["path"] == "/lake"
    assert "hunter2" not in str(notes)


def test_a_hive_catalog_is_taken_with_its_options() -> None:
    conf = {"table_type": "external", "client_pool_size": "5"}
    section, notes = carried("/lake", metastore="hive", uri="thrift://h:9083", **conf)
    assert section["catalog"] == {
        "metastore": "hive",
        "uri": "thrift://h:9083",
        "options": {"table.type": "external"},
    }
    assert [note.argument for note in notes] == ["--catalog_conf client.pool.size=5"]


def test_options_of_the_store_are_taken_without_their_secrets() -> None:
    section, notes = carried("s3://b/l", s3_endpoint="http://s:1", **{"s3_secret-key": "hunter2"})
    assert section["options"] == {
        "s3.endpoint": "http://s:1",
        "s3.secret-key": "${env:S3_SECRET_KEY}",
    }
    assert "S3_SECRET_KEY" in notes[0].text
    assert "hunter2" not in str(notes)
    section, notes = carried("s3://b/l", keep_secrets=True, **{"s3_secret-key": "hunter2"})
    assert section["options"] == {"s3.secret-key": "hunter2"}
    assert notes == []
