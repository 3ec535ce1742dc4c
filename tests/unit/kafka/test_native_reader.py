"""The native reader is used where the extension and the client library have what it needs."""

import ctypes
import logging
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaException

from ingestd.errors import ConfigError
from ingestd.kafka import native_reader
from ingestd.kafka.consumer_pool import borrow_consumer
from ingestd.kafka.native_reader import native_kafka
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.python_reader import PythonReader


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    native_kafka.cache_clear()
    yield
    native_kafka.cache_clear()


def found(monkeypatch: pytest.MonkeyPatch, extension: object) -> object:
    monkeypatch.setattr(native_reader, "native_module", lambda: extension)
    return native_kafka()


def test_without_the_extension_there_is_no_native_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, None) is None


def test_an_extension_that_only_decodes_is_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, SimpleNamespace(FORMAT=1)) is None


def test_a_function_that_the_client_library_lacks_rules_it_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = ["rd_kafka_new", "rd_kafka_no_such_function"]
    with caplog.at_level(logging.WARNING):
        assert found(monkeypatch, SimpleNamespace(KAFKA_FUNCTIONS=names)) is None
    [record] = [record for record in caplog.records if record.message == "kafka_reader"]
    assert "no function rd_kafka_no_such_function" in vars(record)["ctx"]["reason"]


def test_addresses_are_those_of_the_library_that_the_python_client_uses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extension = SimpleNamespace(KAFKA_FUNCTIONS=["rd_kafka_version"])
    result = found(monkeypatch, extension)
    assert isinstance(result, tuple)
    kafka, addresses = result
    assert kafka is extension
    version = ctypes.CFUNCTYPE(ctypes.c_int)(addresses["rd_kafka_version"])
    assert version() > 0x02000000


@pytest.mark.parametrize("native", [True, False])
def test_a_property_that_does_not_do_is_named_by_both_readers(
    native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr("ingestd.kafka.consumer_pool.native_kafka", lambda: None)
    elif native_kafka() is None:
        pytest.skip("the native extension is not installed")
    properties = {"bootstrap.servers": "127.0.0.1:1", "no.such.property": "1"}
    source = KafkaSource("shop", ("orders",), properties=properties)
    named = pytest.raises(ConfigError, match=r"sources\.shop\.kafka: .*no\.such\.property")
    with named, borrow_consumer(source):
        pass


def test_headers_are_read_by_the_python_client() -> None:
    source = KafkaSource("shop", ("orders",), properties={"bootstrap.servers": "127.0.0.1:1"})
    with borrow_consumer(source, headers=True) as lent:
        assert isinstance(lent.reader, PythonReader)


def test_the_python_client_says_what_it_refuses() -> None:
    with pytest.raises(KafkaException, match=r"no\.such"):
        PythonReader({"no.such.property": "1", "group.id": "g"}, headers=False)
