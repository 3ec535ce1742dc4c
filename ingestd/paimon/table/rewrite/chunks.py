"""Tables that come one by one, put together for as much as memory may hold at a time."""

from collections.abc import Iterable, Iterator

import pyarrow as pa


def rounds(parts: Iterable[pa.Table], most_bytes: int) -> Iterator[pa.Table]:
    """Consecutive parts as one table of this many bytes at most; a larger part comes alone."""
    held, size = list[pa.Table](), 0
    for part in parts:
        if held and size + part.nbytes > most_bytes:
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(part)
        size += part.nbytes
    if held:
        yield pa.concat_tables(held)
