"""What a data format asks of a schema registry: the schema behind the id in a message."""

from dataclasses import dataclass
from typing import Literal, Protocol

from ingestd.errors import ConfigError

SchemaKind = Literal["AVRO", "PROTOBUF", "JSON"]
IdLocation = Literal["prefix", "header", "auto"]
SchemaId = int | str
"""A number, or the 32 hexadecimal digits of a GUID."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema of a registry with all that it refers to.

    `references` are the schemas it uses, each behind those that it uses itself; `name` is what
    the others call it: the full name of an Avro type, the path of a Protobuf file.
    """

    kind: SchemaKind
    text: str
    references: tuple["RegisteredSchema", ...] = ()
    name: str = ""


class SchemaLookup(Protocol):
    """Finds schemas. Whether they are remembered is its own business."""

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """The schema of an id; None if the registry, being well, does not have it.

        Raises SourceError if the registry did not answer: nothing is known of the id then.
        """
        ...

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        """The schemas that were registered before it under the same name, the newest first.

        Raises SourceError if the registry did not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Framing:
    """How the messages of a source name their schemas.

    `auto` looks into the headers first. `id_bytes` is 4, or 8 for Apicurio's own format.
    """

    location: IdLocation = "prefix"
    id_bytes: int = 4

    @property
    def needs_headers(self) -> bool:
        """Whether records must be fetched with their headers."""
        return self.location != "prefix"


def lookup_of(schemas: SchemaLookup | None, data_format: str) -> SchemaLookup:
    """The lookup of a data format that needs one; ConfigError if there is none."""
    if schemas is None:
        raise ConfigError(
            f"the data format {data_format!r} needs a schema registry: give the source "
            "'schema-registry: {url: ...}'"
        )
    return schemas
