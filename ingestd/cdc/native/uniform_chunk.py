"""Decode chunks natively whose messages all have the layout of the first one.

Their bytes are not rewritten. Other chunks are decoded message by message, with the same result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from ingestd.cdc.base import ChangeBatch, RecordChunk
from ingestd.cdc.debezium_envelope import BARE
from ingestd.cdc.message_key import MessageKey
from ingestd.cdc.messages import Messages
from ingestd.cdc.native.classifier import Classifier, Look
from ingestd.cdc.native.message_layout import Layout
from ingestd.cdc.native.module import NativeModule
from ingestd.cdc.native.reader import NativeReader, native_reader
from ingestd.cdc.native.rows import read_with
from ingestd.cdc.normalized_events import NormalizedEvent, TableNormalizer
from ingestd.cdc.row_layout import Indices
from ingestd.cdc.row_plan import RowPlan
from ingestd.cdc.texts import all_there

MakeLayout = Callable[[TableNormalizer, RowPlan], Layout | None]
KeyCheck = Callable[[Sequence[bytes | None]], bool]
"""Whether a format regards all of these message keys as absent."""

_MAX_READERS = 2000
_PAYLOAD = "payload"


def any_keys(keys: Sequence[bytes | None]) -> bool:
    """Return True: the format ignores message keys."""
    return True


def no_keys(keys: Sequence[bytes | None]) -> bool:
    """Return whether no message has a key, for formats that read every key."""
    return keys.count(None) == len(keys)


def no_objects(keys: Sequence[bytes | None]) -> bool:
    """Return whether no message key is an object, for formats that read only these."""
    return no_keys(keys) or all(key is None or key[:1] not in _MAY_OPEN for key in keys)


_MAY_OPEN = frozenset({b"{", b" ", b"\t", b"\r", b"\n"})


@dataclass(frozen=True, slots=True)
class Native:
    """The native decoding of a format.

    `look` is None if messages must be decoded in order, because one affects the next.
    """

    make_layout: MakeLayout
    look: Look | None = None
    keyless: KeyCheck = any_keys


class UniformChunkReader:
    """Decodes messages that all have the layout of the first; caches the readers."""

    def __init__(self, module: NativeModule, native: Native) -> None:
        self._module = module
        self._native = native
        self._sorter = None if native.look is None else Classifier(module, native.look)
        self._readers: dict[int, tuple[RowPlan, NativeReader | None]] = {}

    def by_table(self, values: Sequence[bytes | None]) -> list[Indices]:
        """Return indices of messages that may have one layout, by table."""
        return [] if self._sorter is None else self._sorter.sort(values)

    def read(self, chunk: RecordChunk, first: NormalizedEvent, plan: RowPlan) -> ChangeBatch | None:
        """Return the batch of a chunk; None if any message differs in layout from the first.

        `first` is the content of the first message, `plan` the plan of its table.
        """
        messages = self._messages(chunk, first)
        if messages is None:
            return None
        reader = self._reader(first.form, plan)
        return None if reader is None else read_with(reader, plan, messages)

    def _reader(self, form: TableNormalizer, plan: RowPlan) -> NativeReader | None:
        found = self._readers.get(id(plan))
        if found is not None:
            return found[1]
        if len(self._readers) >= _MAX_READERS:
            self._readers.clear()
        layout = self._native.make_layout(form, plan)
        reader = None
        if layout is not None and plan.specs is not None:
            reader = native_reader(self._module, layout, plan.specs, form.hidden)
        # The plan is referenced, so that no other plan gets its id.
        self._readers[id(plan)] = (plan, reader)
        return reader

    def _messages(self, chunk: RecordChunk, first: NormalizedEvent) -> Messages | None:
        if not all_there(chunk.values):
            return None
        values = cast("Sequence[bytes]", chunk.values)
        if first.key.shape is None:
            keyless = self._native.keyless(chunk.keys)
            return Messages(values, None, chunk.offsets, first.shape) if keyless else None
        if not all_there(chunk.keys) or _ambiguous(first.key):
            return None
        keys = cast("Sequence[bytes]", chunk.keys)
        return Messages(values, keys, chunk.offsets, first.shape, first.key.shape)


def _ambiguous(key: MessageKey) -> bool:
    """Return whether another key with the same fields may be an envelope."""
    return key.shape is BARE and _PAYLOAD in key.names
