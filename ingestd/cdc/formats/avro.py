"""Data format `avro`: Avro records as rows, with schemas from a registry."""

from collections.abc import Sequence

from ingestd.cdc.avro.aliases import Names, former_names, record_comments
from ingestd.cdc.avro.reader import AvroReader, rejections
from ingestd.cdc.avro.rows import AvroColumn
from ingestd.cdc.avro.writers import AvroWriters
from ingestd.cdc.base import Comments, FormatDescriptor, FormatSettings
from ingestd.cdc.formats.plain_records import Fields, PlainRecords
from ingestd.cdc.record_errors import Reasons, record_error
from ingestd.cdc.schema_frames import SchemaFrame
from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaLookup, lookup_of


def new_format(settings: FormatSettings) -> PlainRecords:
    """Return a new `avro` decoder. Raises ConfigError without a schema registry."""
    schemas = lookup_of(settings.schemas, "avro")
    return PlainRecords("avro", AvroFields(schemas), settings.framing)


class AvroFields:
    """A reader of Avro records into columns, with a cache of their schemas."""

    def __init__(self, schemas: SchemaLookup) -> None:
        self._writers = AvroWriters(schemas)
        self._reader = AvroReader()

    @property
    def refine(self) -> None:
        """None: messages do not state their type, because an Avro schema declares only one."""

    def read(
        self, frame: SchemaFrame, messages: Sequence[bytes], stage: str, refused: Reasons
    ) -> Fields:
        """Read messages into columns; add the reasons of rejected messages to `refused`, by index.

        `stage` is the stage that errors and reasons state, such as "decode". Raises RecordError if
        the schema does not exist, is invalid or is not the schema of a record with fields,
        SourceError if the registry does not respond, and ConfigError if it rejects the credentials
        or the messages are too large.
        """
        document = "message key" if stage == "key" else "message value"
        node = self._writers.node(frame, stage)
        if node.kind != "record" or not node.names:
            message = f"the {document} is not an Avro record with fields"
            raise record_error(stage, "not-an-object", message)
        record = self._writers.record(node)
        fields = self._reader.read(messages, frame.skip, node)
        for index, reason in rejections(fields, stage).items():
            refused.setdefault(index, reason)
        return {
            name: AvroColumn(record.columns[name], child, fields.arrays[name])
            for name, child in zip(node.names, node.children, strict=True)
        }

    def former(self, frame: SchemaFrame) -> Names:
        """Return (alias, name) for each alias of a field of the Avro record.

        An alias that is the name of a field is omitted.
        """
        return former_names(self._writers.node(frame, "decode"))

    def comments(self, frame: SchemaFrame) -> Comments:
        """Return the `doc` attributes of the Avro record and of its fields, as comments."""
        return record_comments(self._writers.node(frame, "decode"))


def _is_avro(schema: RegisteredSchema) -> bool:
    return schema.kind == "AVRO"


FORMAT = FormatDescriptor(
    name="avro",
    description="Rows in Avro",
    new_decoder=new_format,
    recognizes_schema=_is_avro,
    registry="required",
    schema_changes=True,
)
