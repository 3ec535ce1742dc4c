"""Tasks on their way to executors: no secret is in their bytes, and each is there when they run."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError
from ingestd.ingest.settings.context import BatchContext, TableContext
from ingestd.paimon.io.file_io import MemoryFileIO, file_io_for, storage_options
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.secret_references import resolve
from ingestd.spark.sealed_task import SealedTask, seal
from ingestd.spark.stages import DecodeTask
from tests.support.native_tables import native_table
from tests.support.planted import Planted


@pytest.fixture(autouse=True)
def no_other_references(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingestd.secret_references._known", {})


def planted_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: Planted) -> DecodeTask:
    """A task of a pipeline with a secret in each place that tasks use."""
    folder = tmp_path / "secrets"
    monkeypatch.setenv("REGISTRY_LOGIN", f"me:{planted.secret('registry')}")
    monkeypatch.setenv("S3_KEY", planted.secret("s3-key"))
    kafka = {
        "bootstrap.servers": "localhost:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": planted.file(folder, "kafka"),
    }
    registry = {"url": "http://127.0.0.1:1", "basic-auth-user-info": "${env:REGISTRY_LOGIN}"}
    options = {"s3.access-key": "${env:S3_KEY}", "s3.secret-key": planted.file(folder, "s3-secret")}
    source = {"kafka": kafka, "topics": ["t"], "format": "debezium-avro"}
    document = {
        "pipeline": {"name": "shop"},
        "warehouse": {"path": "s3://lake/w", "database": "ods", "options": options},
        "sources": {"shop": {**source, "schema-registry": registry}},
    }
    path = tmp_path / "ingestd.yaml"
    path.write_text(yaml.safe_dump(document))
    settings = pipeline_settings(load_config(path))
    stored = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    io = file_io_for("s3://lake/w", storage_options(settings.catalog_options))
    table = FileStoreTable("s3://lake/w/ods.db/t", stored.schema, io, "ods.t")
    tables = {"ods.t": TableContext("ods.t", table)}
    context = BatchContext("shop", "ods", tables, settings.routing, settings.sources, "ods.dead")
    return DecodeTask(context, None)


def test_no_secret_is_in_a_sealed_task_and_all_are_in_the_opened_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = Planted()
    task = planted_task(tmp_path, monkeypatch, planted)
    assert sorted(planted.found_in(pickle.dumps(task))) == sorted(planted.by_place)
    sealed = seal(task)
    sent = pickle.dumps(sealed)
    assert planted.found_in(sent) == []
    opened = pickle.loads(sent).opened()
    assert pickle.dumps(opened.context.sources) == pickle.dumps(task.context.sources)
    assert sorted(planted.found_in(pickle.dumps(opened))) == sorted(planted.by_place)


def test_an_executor_that_lacks_a_secret_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = seal(planted_task(tmp_path, monkeypatch, Planted()))
    assert isinstance(sealed, SealedTask)
    monkeypatch.delenv("S3_KEY")
    with pytest.raises(ConfigError, match="cannot look up a secret: environment variable S3_KEY"):
        sealed.opened()
    monkeypatch.setenv("S3_KEY", "x")
    (tmp_path / "secrets" / "kafka").unlink()
    with pytest.raises(ConfigError, match=r"secrets/kafka cannot be read"):
        sealed.opened()


def double(numbers: Iterator[int]) -> Iterator[int]:
    """A task."""
    return (2 * number for number in numbers)


def test_a_sealed_task_is_called_like_the_task(tmp_path: Path) -> None:
    assert seal(double) is double
    resolve("${env:A}", {"A": "a secret"}, tmp_path)
    sealed = seal(double)
    assert isinstance(sealed, SealedTask)
    assert list(sealed(iter([1, 2]))) == [2, 4]


def test_a_relative_file_is_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("a secret\n")
    monkeypatch.chdir(tmp_path)
    value = resolve("Bearer ${file:token}", {}, tmp_path)
    sealed = seal(Held(value))
    monkeypatch.chdir("/")
    assert isinstance(sealed, SealedTask)
    assert b"a secret" not in sealed.payload
    assert list(sealed()) == ["Bearer a secret"]


class Held:
    """A task that returns what it holds."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __call__(self) -> Iterator[str]:
        yield self.value
