"""The interface to a schema registry, which looks up schemas by the id in a message."""

import re
from dataclasses import dataclass
from typing import Literal, Protocol

from ingestd.errors import ConfigError

_NUMBER_MARK, _GUID_MARK = b"\x00", b"\x01"
"""The first byte of a message that starts with a schema id, a number or a GUID.

JSON starts with neither byte.
"""
_GUID_BYTES = 16
_GLUE_START = re.compile(rb"\x03[\x00\x05].{16}", re.DOTALL)
"""The start of a message of AWS Glue: version 3, compression (0 or zlib), and a UUID."""
GLUE_WAY_OUT = (
    "let the producers write with a registry of the Confluent protocol (such as "
    "io.confluent.connect.avro.AvroConverter), or as JSON without a registry, and configure that"
)


def is_glue(message: bytes | None) -> bool:
    """Return whether a message has the framing of the AWS Glue Schema Registry."""
    return message is not None and _GLUE_START.match(message) is not None


SchemaKind = Literal["AVRO", "PROTOBUF", "JSON"]
IdLocation = Literal["prefix", "header", "auto"]
SchemaId = int | str
"""A schema id: a number, the 32 hexadecimal digits of a GUID, or an id of Apicurio with its kind,
such as `contentIds/7` or `globalIds/7`.
"""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema in a registry, with the schemas to which it refers.

    `references` are ordered so that each schema follows the schemas to which it refers. `name` is
    the name by which other schemas refer to it: the full name of an Avro type, or the path of a
    Protobuf file.
    """

    kind: SchemaKind
    text: str
    references: tuple["RegisteredSchema", ...] = ()
    name: str = ""


class SchemaLookup(Protocol):
    """Looks up schemas in a registry, and may cache them."""

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """Return the schema with this id, or None if it does not exist.

        Raises SourceError if the registry does not respond, ConfigError if it rejects the
        credentials.
        """
        ...

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        """Return the earlier versions of a schema in the registry, newest first; () for none.

        Raises SourceError if the registry does not respond, ConfigError if it rejects the
        credentials.
        """
        ...


@dataclass(frozen=True, slots=True)
class Framing:
    """How the messages of a source refer to their registered schemas.

    `location` is the place of the reference: a prefix of the message, or a header. With "auto",
    headers take precedence over prefixes. `id_bytes` is 4, or 8 for serializers of Apicurio 2. If
    `is_apicurio`, headers have the names that Apicurio uses, and the names of Protobuf messages
    replace their indexes.
    """

    location: IdLocation = "prefix"
    id_bytes: int = 4
    is_apicurio: bool = False

    @property
    def needs_headers(self) -> bool:
        """Whether records must be fetched with their headers."""
        return self.location != "prefix"

    def json_body(self, message: bytes) -> bytes:
        """Return a JSON message without the schema id that may precede the JSON.

        The message is returned unchanged if it does not begin with a schema id.
        """
        mark = message[:1]
        if mark == _NUMBER_MARK:
            return message[1 + self.id_bytes :]
        return message[1 + _GUID_BYTES :] if mark == _GUID_MARK else message


def lookup_of(schemas: SchemaLookup | None, data_format: str) -> SchemaLookup:
    """Return `schemas`, which a data format requires. Raises ConfigError if it is None."""
    if schemas is None:
        raise ConfigError(
            f"the data format {data_format!r} needs a schema registry: give the source "
            "'schema-registry: {url: ...}'"
        )
    return schemas
