"""Keys and values of records: lists, or texts where the reader of Kafka keeps them in memory.

What a list answers by looking at each of its objects, texts in memory answer without making one.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

Texts: TypeAlias = Sequence[bytes | None]
"""A list, or what looks like one and makes a bytes object whenever it is asked for it."""
Numbers: TypeAlias = npt.NDArray[np.int64]
_MISSING = -1


class _TextsInMemory(Protocol):
    """The extension's own documentation says more."""

    lengths: Any

    def take(self, places: Numbers) -> Texts: ...
    def join(self, parts: list[Texts]) -> Texts: ...
    def __contains__(self, text: bytes | None) -> bool: ...


def joined(parts: Sequence[Texts]) -> Texts:
    """The texts of all parts, which come from one reader, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0] if parts else []
    if _in_memory(first):
        return first.join(list(parts))
    return list(chain.from_iterable(parts))


def picked(texts: Texts, places: Numbers) -> Texts:
    """The texts at these places."""
    if _in_memory(texts):
        return texts.take(places)
    return [texts[place] for place in places.tolist()]


def all_there(texts: Texts) -> bool:
    """Whether none is missing."""
    if _in_memory(texts):
        return None not in texts
    # Asking for truth is much quicker than looking for None.
    return all(texts) or None not in texts


def there(texts: Texts, *, empty: bool) -> Numbers:
    """The places of texts that are not missing, nor empty unless such are wanted."""
    least = 0 if empty else 1
    if _in_memory(texts):
        return np.flatnonzero(_lengths(texts) >= least)
    places = [place for place, text in enumerate(texts) if text is not None and len(text) >= least]
    return np.array(places, np.int64)


def bytes_of(texts: Texts) -> int:
    """How long all texts are together."""
    if _in_memory(texts):
        return int(np.maximum(_lengths(texts), 0).sum())
    return sum(len(text) for text in texts if text)


def _in_memory(texts: object) -> TypeGuard[_TextsInMemory]:
    return not isinstance(texts, list | tuple)


def _lengths(texts: _TextsInMemory) -> Numbers:
    return np.frombuffer(texts.lengths, np.int64)
