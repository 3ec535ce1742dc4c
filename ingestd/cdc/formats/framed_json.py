"""JSON whose serializer registered a JSON Schema: the schema id stands before the JSON itself.

The id is taken off and the rest read by the data format of the source; the schema is not needed
for that, so no registry is asked. Messages without an id are left as they are.
"""

from collections.abc import Sequence
from dataclasses import replace

from ingestd.cdc.base import DataFormat, Decoded, FormatSettings, KnownColumns, RecordChunk
from ingestd.cdc.schema_lookup import Framing

_NUMBER, _GUID = b"\x00", b"\x01"
_GUID_SIZE = 17


def new_format(inner: DataFormat, settings: FormatSettings) -> "FramedJson":
    """The decoder of framed messages around that of a data format."""
    return FramedJson(inner, settings.framing)


class FramedJson:
    """Takes frames off; what is rejected keeps its own bytes."""

    def __init__(self, inner: DataFormat, framing: Framing) -> None:
        self.name = inner.name
        self._inner = inner
        self._size = 1 + framing.id_bytes

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk as the data format does."""
        bare = replace(chunk, keys=self._bodies(chunk.keys), values=self._bodies(chunk.values))
        decoded = self._inner.decode(bare, known, declared)
        if not decoded.rejected:
            return decoded
        places = {offset: place for place, offset in enumerate(chunk.offsets.tolist())}
        rejected = [
            replace(one, key=chunk.keys[places[one.offset]], value=chunk.values[places[one.offset]])
            for one in decoded.rejected
        ]
        return replace(decoded, rejected=rejected)

    def _bodies(self, messages: Sequence[bytes | None]) -> list[bytes | None]:
        return [self._body(one) for one in messages]

    def _body(self, message: bytes | None) -> bytes | None:
        """JSON begins with neither of the two bytes that frames begin with."""
        if not message or message[:1] not in (_NUMBER, _GUID):
            return message
        return message[self._size if message[:1] == _NUMBER else _GUID_SIZE :]
