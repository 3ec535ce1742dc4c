"""What runs: the version of the daemon, and which decoder and Kafka client it uses."""

from dataclasses import dataclass

from ingestd.cdc.native_module import decoder_name
from ingestd.kafka.native_reader import client_version, native_kafka


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """Versions and parts of a process.

    `decoder` and `kafka_reader` are `native` or `python`: without the native extension, or with a
    librdkafka that it does not know, messages are decoded and read in Python.
    """

    version: str
    decoder: str
    kafka_reader: str
    librdkafka: str


def build_info(version: str) -> BuildInfo:
    """Return what runs in this process."""
    reader = "python" if native_kafka() is None else "native"
    return BuildInfo(version, decoder_name(), reader, client_version())
