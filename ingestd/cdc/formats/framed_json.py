"""Decode JSON messages with a registered JSON Schema, in which a schema id precedes the JSON.

The id is removed, and the JSON is decoded by the data format of the source. The schema is not
required for that, so the registry is not queried. Messages without an id are not changed.
"""

from collections.abc import Sequence
from dataclasses import replace

from ingestd.cdc.base import DataFormat, Decoded, FormatSettings, KnownColumns, RecordChunk
from ingestd.cdc.schema_lookup import Framing


def new_format(inner: DataFormat, settings: FormatSettings) -> "FramedJson":
    """Return a decoder that removes schema ids, and then decodes the messages with `inner`.

    `settings` state how schema ids precede messages.
    """
    return FramedJson(inner, settings.framing)


class FramedJson:
    """A decoder that removes schema ids from messages, and decodes them with the decoder `inner`.

    `framing` states how schema ids precede messages. Rejected records contain the original bytes.
    """

    def __init__(self, inner: DataFormat, framing: Framing) -> None:
        self.name = inner.name
        self._inner = inner
        self._framing = framing

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Remove the schema ids of keys and values, then decode the chunk with the inner decoder.

        `known` are the columns of existing target tables, and `declared` the columns whose types
        are configured. Invalid records are returned as rejected records, with their original bytes.
        Raises the errors of the inner decoder.
        """
        bare = replace(chunk, keys=self._bodies(chunk.keys), values=self._bodies(chunk.values))
        decoded = self._inner.decode(bare, known, declared)
        if not decoded.rejected:
            return decoded
        indices = {offset: index for index, offset in enumerate(chunk.offsets.tolist())}
        rejected = [
            replace(
                rejected_record,
                key=chunk.keys[indices[rejected_record.offset]],
                value=chunk.values[indices[rejected_record.offset]],
            )
            for rejected_record in decoded.rejected
        ]
        return replace(decoded, rejected=rejected)

    def _bodies(self, messages: Sequence[bytes | None]) -> list[bytes | None]:
        body = self._framing.json_body
        return [message and body(message) for message in messages]
