"""Typed columns from JSON, Avro and Protobuf, Kafka records as columns, and text functions."""

from collections.abc import Callable, Iterator
from typing import Any, Final, final, overload

import numpy as np
import numpy.typing as npt

FORMAT: Final[int]
"""Version of the interface of `Plan`, `AvroReader`, `ProtobufReader`, `Texts` and `Consumer`."""

KAFKA_FUNCTIONS: Final[list[str]]
"""Functions of librdkafka whose addresses `Consumer` takes."""

COLUMNS_FORMAT: Final[int]
"""Version of the functions below, which are independent of JSON and Kafka."""

def take_texts(
    places: Buffer, offsets: Buffer, data: Buffer, validity: Buffer | None, first: int
) -> tuple[Buffer, Buffer, Buffer | None, int]:
    """Return offsets, bytes, validity and null count of selected rows of a text column.

    Places are 64-bit, offsets 32-bit integers, or arrays of them; row 0 is at `first` of offsets
    and bits. Raises IndexError for an invalid row, OverflowError for more than 2 GiB of text.
    """

def text_bounds(
    rows: int, offsets: Buffer, data: Buffer, validity: Buffer | None, first: int
) -> tuple[int, int] | None:
    """Return the first rows of the smallest and largest text by bytes, None if all are null."""

def sha2_texts(rows: int, offsets: Buffer, data: Buffer, first: int, bits: int) -> Buffer:
    """Return the SHA-2 hashes of texts as lower-case hexadecimal text, one after the other.

    Null texts are hashed, too. Raises IndexError for a column of fewer rows, ValueError for a
    number of bits that SHA-2 does not have.
    """

def sorted_among(numbers: Buffer, known: Buffer) -> Buffer:
    """Return a byte, 0 or 1, for each sorted 32-bit integer: whether a sorted array has it."""

@final
class Buffer:
    """A block of memory with the buffer protocol."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Column:
    """A column of all texts as Arrow buffers; None if its type has no such buffer."""

    @property
    def seen(self) -> int: ...
    @property
    def nulls(self) -> int: ...
    @property
    def validity(self) -> Buffer | None: ...
    @property
    def offsets(self) -> Buffer | None: ...
    @property
    def data(self) -> Buffer | None: ...
    @property
    def left_out(self) -> Buffer | None: ...
    @property
    def lacking(self) -> Buffer | None: ...
    @property
    def runs(self) -> list[tuple[int, bytes | None]] | None: ...

@final
class Texts:
    """A sequence of bytes objects or None; each object is created on access.

    It compares with lists, and is pickled as a list. A slice keeps only the memory of its own
    texts alive.
    """

    def __new__(cls, texts: list[bytes | None]) -> Texts: ...
    @classmethod
    def join(cls, parts: list[Texts]) -> Texts: ...
    def take(self, places: npt.NDArray[np.int64]) -> Texts: ...
    @property
    def lengths(self) -> Buffer: ...
    def shared_head(self, size: int) -> bytes | None: ...
    def count(self, text: bytes | None) -> int: ...
    def __len__(self) -> int: ...
    def __contains__(self, text: bytes | None) -> bool: ...
    @overload
    def __getitem__(self, index: int) -> bytes | None: ...
    @overload
    def __getitem__(self, index: slice) -> Texts: ...
    def __iter__(self) -> Iterator[bytes | None]: ...

@final
class Records:
    """Records of one topic partition as parallel columns; numbers are 64-bit integers.

    `sizes` are bytes of key and value; an event is a code, a text and an offset. Events of
    no topic partition have the topic "".
    """

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offsets(self) -> Buffer: ...
    @property
    def timestamps(self) -> Buffer: ...
    @property
    def sizes(self) -> Buffer: ...
    @property
    def keys(self) -> Texts: ...
    @property
    def values(self) -> Texts: ...
    @property
    def events(self) -> list[tuple[int, str, int]]: ...

@final
class Consumer:
    """A Kafka consumer with assigned topic partitions."""

    def __new__(
        cls,
        addresses: dict[str, int],
        properties: dict[str, str],
        token: Callable[[str], tuple[str, float, str, dict[str, str]]] | None = None,
    ) -> Consumer: ...
    def assign(self, places: list[tuple[str, int, int]]) -> None: ...
    def unassign(self) -> None: ...
    def consume(self, count: int, milliseconds: int, keep: bool) -> list[Records]: ...
    def errors(self) -> list[tuple[int, str]]: ...
    def close(self) -> None: ...

@final
class Plan:
    """The fields to read from JSON texts, and their column types."""

    def __new__(cls, spec: tuple[Any, ...]) -> Plan: ...
    def read(
        self, texts: list[bytes] | Texts, prefix: bytes, suffix: bytes
    ) -> dict[tuple[str, ...], Column] | None: ...

@final
class ArrowArray:
    """An Arrow array: its buffers and children are in the order of Arrow's columnar format."""

    @property
    def length(self) -> int: ...
    @property
    def nulls(self) -> int: ...
    @property
    def buffers(self) -> list[Buffer | None]: ...
    @property
    def children(self) -> list[ArrowArray]: ...

@final
class AvroReader:
    """A reader of Avro messages with one writer schema."""

    def __new__(cls, spec: tuple[Any, ...]) -> AvroReader: ...
    def read(
        self, texts: list[bytes] | Texts, skip: int, least: int, per_byte: int
    ) -> tuple[ArrowArray, Buffer] | None: ...

@final
class ProtobufReader:
    """A reader of the simple fields of Protobuf messages of one type."""

    def __new__(
        cls,
        fields: list[tuple[int, Any, bool, bool, int | None]],
        residual: list[tuple[int, int | None]],
    ) -> ProtobufReader: ...
    def read(
        self, texts: list[bytes] | Texts, skip: int
    ) -> tuple[ArrowArray, ArrowArray, Buffer] | None: ...
