"""JSON messages with a registered JSON Schema: the schema id precedes the JSON itself.

The id is removed and the rest is decoded by the data format of the source; the schema is not
needed for that, so the registry is not queried. Messages without an id are left as they are.
"""

from collections.abc import Sequence
from dataclasses import replace

from ingestd.cdc.base import DataFormat, Decoded, FormatSettings, KnownColumns, RecordChunk
from ingestd.cdc.schema_lookup import Framing


def new_format(inner: DataFormat, settings: FormatSettings) -> "FramedJson":
    """Return a decoder that removes schema ids and passes messages to `inner`."""
    return FramedJson(inner, settings.framing)


class FramedJson:
    """Removes schema ids; rejected records keep their original bytes."""

    def __init__(self, inner: DataFormat, framing: Framing) -> None:
        self.name = inner.name
        self._inner = inner
        self._framing = framing

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk as the data format does."""
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
