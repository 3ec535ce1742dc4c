"""Look up, parse and cache the writer schemas of Avro messages."""

from collections.abc import Mapping
from dataclasses import dataclass

from ingestd.cdc.avro.nodes import AvroNode, AvroSchemaError, parse_avro
from ingestd.cdc.avro.record_columns import record_columns
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.record_errors import RecordError, record_error
from ingestd.cdc.schema_frames import SchemaFrame
from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaKind, SchemaLookup

_MAX_SCHEMAS = 5000


@dataclass(frozen=True, slots=True, eq=False)
class AvroRecord:
    """A record type, and the columns of its fields by name."""

    node: AvroNode
    columns: Mapping[str, WireColumn]

    @property
    def nodes(self) -> dict[str, AvroNode]:
        """The types of the fields by name."""
        return dict(zip(self.node.names, self.node.children, strict=True))


class AvroWriters:
    """A cache of parsed writer schemas, by the reference to the schema in messages.

    Schemas that are invalid are cached, too, so that each is parsed only once.
    """

    def __init__(self, schemas: SchemaLookup) -> None:
        self._schemas = schemas
        self._nodes: dict[bytes, AvroNode | RecordError] = {}
        self._records: dict[AvroNode, AvroRecord] = {}

    def node(self, frame: SchemaFrame, stage: str) -> AvroNode:
        """Return the parsed schema to which a frame refers.

        `stage` is the stage that errors state. Raises RecordError if the schema does not exist or
        cannot be used, SourceError if the registry does not respond, and ConfigError if it rejects
        the credentials.
        """
        schema = self._nodes.get(frame.mark)
        if schema is None:
            if len(self._nodes) >= _MAX_SCHEMAS:
                self._nodes.clear()
                self._records.clear()
            registered = registered_schema(self._schemas, frame, stage, "AVRO")
            try:
                texts = [reference.text for reference in registered.references]
                schema = parse_avro(registered.text, texts)
            except AvroSchemaError as error:
                schema = record_error(stage, "invalid-schema", str(error))
            self._nodes[frame.mark] = schema
        if isinstance(schema, RecordError):
            raise schema
        return schema

    def record(self, node: AvroNode) -> AvroRecord:
        """Return a record type with its columns.

        Raises RecordError if the record cannot be mapped to columns.
        """
        known_record = self._records.get(node)
        if known_record is None:
            try:
                columns = {column.name: column for column in record_columns(node)}
            except AvroSchemaError as error:
                raise record_error("schema", "invalid-schema", str(error)) from error
            known_record = self._records[node] = AvroRecord(node, columns)
        return known_record


def registered_schema(
    schemas: SchemaLookup, frame: SchemaFrame, stage: str, kind: SchemaKind
) -> RegisteredSchema:
    """Return the registered schema to which a frame refers.

    `stage` is the stage that errors state. Raises RecordError if the schema does not exist or is of
    another kind, SourceError if the registry does not respond, and ConfigError if it rejects the
    credentials.
    """
    schema_id = frame.schema_id(stage)
    registered = schemas.find(schema_id)
    if registered is None:
        message = f"the schema registry has no schema {schema_id}"
        raise record_error(stage, "unknown-schema", message)
    if registered.kind != kind:
        message = f"schema {schema_id} of the registry is of type {registered.kind}, not {kind}"
        raise record_error(stage, "wrong-schema-type", message)
    return registered
