"""Typed columns out of many JSON texts, records of Kafka as columns, and rows of columns."""

from collections.abc import Iterator
from typing import Any, Final, final, overload

import numpy as np
import numpy.typing as npt

FORMAT: Final[int]
"""Version of what is exchanged: plans and their columns, what `Consumer` takes and gives."""

KAFKA_FUNCTIONS: Final[list[str]]
"""Functions of librdkafka whose addresses `Consumer` takes."""

COLUMNS_FORMAT: Final[int]
"""Version of the functions below, which know nothing of texts in JSON and of Kafka."""

def take_texts(
    places: Buffer, offsets: Buffer, data: Buffer, validity: Buffer | None, first: int
) -> tuple[Buffer, Buffer, Buffer | None, int]:
    """Offsets, bytes and validity of some rows of a column of texts, and how many are null.

    Places are 64-bit, offsets 32-bit integers, or arrays of them; row 0 is at `first` of offsets
    and bits. IndexError for a place that is no row, OverflowError for more than 2 GiB of text.
    """

def text_bounds(
    rows: int, offsets: Buffer, data: Buffer, validity: Buffer | None, first: int
) -> tuple[int, int] | None:
    """The first rows of the least and the greatest text by their bytes, None if all are null."""

def sorted_among(numbers: Buffer, known: Buffer) -> Buffer:
    """A byte, 0 or 1, for each of some sorted 32-bit integers: whether it is in a sorted array."""

@final
class Buffer:
    """A block of memory with the buffer protocol."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Column:
    """A column of all texts, as buffers of Arrow; None where its form has no such buffer."""

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
    """Bytes objects or None in a row, as a list has them; each is made when it is asked for.

    It compares with lists, and a pickled one becomes a list. A slice keeps no more memory than its
    own texts have.
    """

    def __new__(cls, texts: list[bytes | None]) -> Texts: ...
    @classmethod
    def join(cls, parts: list[Texts]) -> Texts: ...
    def take(self, places: npt.NDArray[np.int64]) -> Texts: ...
    @property
    def lengths(self) -> Buffer: ...
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

    `sizes` are bytes of key and value; an event is a code, a text and an offset. Events that are
    about no topic partition have the topic "".
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

    def __new__(cls, addresses: dict[str, int], properties: dict[str, str]) -> Consumer: ...
    def assign(self, places: list[tuple[str, int, int]]) -> None: ...
    def unassign(self) -> None: ...
    def consume(self, count: int, milliseconds: int, keep: bool) -> list[Records]: ...
    def errors(self) -> list[tuple[int, str]]: ...
    def close(self) -> None: ...

@final
class Plan:
    """Which fields of JSON texts are wanted, and in which form."""

    def __new__(cls, spec: tuple[Any, ...]) -> Plan: ...
    def read(
        self, texts: list[bytes] | Texts, prefix: bytes, suffix: bytes
    ) -> dict[tuple[str, ...], Column] | None: ...
