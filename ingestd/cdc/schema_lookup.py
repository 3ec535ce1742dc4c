"""The interface to a schema registry: look up the schema of the id in a message."""

from dataclasses import dataclass
from typing import Literal, Protocol

from ingestd.errors import ConfigError

_NUMBER_MARK, _GUID_MARK = b"\x00", b"\x01"
"""First byte of a message that begins with a schema id; JSON begins with neither."""
_GUID_BYTES = 16

SchemaKind = Literal["AVRO", "PROTOBUF", "JSON"]
IdLocation = Literal["prefix", "header", "auto"]
SchemaId = int | str
"""A number, or the 32 hexadecimal digits of a GUID."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema of a registry with the schemas that it refers to.

    `references` are the schemas it uses, each after those that it uses itself; `name` is what
    the others call it: the full name of an Avro type, the path of a Protobuf file.
    """

    kind: SchemaKind
    text: str
    references: tuple["RegisteredSchema", ...] = ()
    name: str = ""


class SchemaLookup(Protocol):
    """Looks up schemas; may cache them."""

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """Return the schema of an id; None if the registry answers that it does not exist.

        Raises SourceError if the registry did not answer.
        """
        ...

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        """Return the schemas registered earlier under the same name, the newest first.

        Raises SourceError if the registry did not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Framing:
    """How the messages of a source refer to their schemas.

    `auto` reads the headers first. `id_bytes` is 4, or 8 for Apicurio's own format.
    """

    location: IdLocation = "prefix"
    id_bytes: int = 4

    @property
    def needs_headers(self) -> bool:
        """Return whether records must be fetched with their headers."""
        return self.location != "prefix"

    def json_body(self, message: bytes) -> bytes:
        """Return a JSON message without the schema id that may precede it."""
        mark = message[:1]
        if mark == _NUMBER_MARK:
            return message[1 + self.id_bytes :]
        return message[1 + _GUID_BYTES :] if mark == _GUID_MARK else message


def lookup_of(schemas: SchemaLookup | None, data_format: str) -> SchemaLookup:
    """Return the lookup of a data format. Raises ConfigError if none is configured."""
    if schemas is None:
        raise ConfigError(
            f"the data format {data_format!r} needs a schema registry: give the source "
            "'schema-registry: {url: ...}'"
        )
    return schemas
