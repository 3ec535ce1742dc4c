"""The version of the daemon, and the decoder and Kafka client in use."""

from dataclasses import dataclass

from ingestd.cdc.native_module import decoder_name
from ingestd.kafka.native_reader import client_version, native_kafka


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """The versions of ingestd and librdkafka, and the implementations in use.

    `decoder` and `kafka_reader` are `native` or `python`: without the native extension, or with an
    unknown version of librdkafka, messages are decoded and read in Python.
    """

    version: str
    decoder: str
    kafka_reader: str
    librdkafka: str


def build_info(version: str) -> BuildInfo:
    """Return the versions and implementations in use in this process."""
    reader = "python" if native_kafka() is None else "native"
    return BuildInfo(version, decoder_name(), reader, client_version())
