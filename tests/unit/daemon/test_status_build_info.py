"""Which parts run, and when the native reader is left alone."""

import logging

import pytest
from confluent_kafka import libversion
from prometheus_client import REGISTRY

from ingestd.daemon.status import BuildInfo, Status, build_info
from ingestd.kafka import native_reader


def test_another_major_version_of_the_client_is_read_in_python(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if native_reader.native_kafka() is None:
        pytest.skip("the native extension is not built: `make setup` needs cargo")
    monkeypatch.setattr(native_reader, "libversion", lambda: ("3.0.0", 0x030000FF))
    native_reader.native_kafka.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            assert build_info("1").kafka_reader == "python"
        (record,) = [record for record in caplog.records if record.msg == "kafka_reader"]
        assert "found 3.0.0" in vars(record)["ctx"]["reason"]
    finally:
        native_reader.native_kafka.cache_clear()


def test_the_parts_are_in_the_status_and_in_a_metric() -> None:
    build = build_info("1.2.3-test")
    assert build.librdkafka == libversion()[0]
    status = Status("shop", build.version, ["a"])
    status.show_build(build)
    labels = {
        "version": "1.2.3-test",
        "decoder": build.decoder,
        "kafka_reader": build.kafka_reader,
        "librdkafka": build.librdkafka,
    }
    assert status.document()["build"] == labels
    assert BuildInfo(**labels) == build
    assert REGISTRY.get_sample_value("ingestd_build_info", labels) == 1
