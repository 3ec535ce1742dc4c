"""Keys and values of records: Python lists, or sequences in the memory of the native Kafka reader.

The functions here read a native sequence without creating a bytes object for each item.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

Texts: TypeAlias = Sequence[bytes | None]
"""A list, or a native sequence that creates a bytes object on each access."""
Numbers: TypeAlias = npt.NDArray[np.int64]
_MISSING = -1


class _TextsInMemory(Protocol):
    """The sequence type of the native extension."""

    lengths: Any

    def take(self, indices: Numbers) -> Texts: ...
    def join(self, others: list[Texts]) -> Texts: ...
    def __contains__(self, text: bytes | None) -> bool: ...


def joined(parts: Sequence[Texts]) -> Texts:
    """Return the concatenation of all parts, which must be of one reader."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0] if parts else []
    if _in_memory(first):
        return first.join(list(parts))
    return list(chain.from_iterable(parts))


def picked(texts: Texts, indices: Numbers) -> Texts:
    """Return the texts at these indices."""
    if _in_memory(texts):
        return texts.take(indices)
    return [texts[index] for index in indices.tolist()]


def all_there(texts: Texts) -> bool:
    """Return whether no text is None."""
    if _in_memory(texts):
        return None not in texts
    # `all` is much faster than a search for None.
    return all(texts) or None not in texts


def there(texts: Texts, *, empty: bool) -> Numbers:
    """Return the indices of texts that are not None, nor empty unless `empty` is set."""
    least = 0 if empty else 1
    if _in_memory(texts):
        return np.flatnonzero(_lengths(texts) >= least)
    indices = [index for index, text in enumerate(texts) if text is not None and len(text) >= least]
    return np.array(indices, np.int64)


def bytes_of(texts: Texts) -> int:
    """Return the total length of all texts in bytes."""
    if _in_memory(texts):
        return int(np.maximum(_lengths(texts), 0).sum())
    return sum(len(text) for text in texts if text)


def _in_memory(texts: object) -> TypeGuard[_TextsInMemory]:
    return not isinstance(texts, list | tuple)


def _lengths(texts: _TextsInMemory) -> Numbers:
    return np.frombuffer(texts.lengths, np.int64)
