"""Paths of new data files in directories outside of the table (`data-file.external-paths`).

Specification: https://paimon.apache.org/docs/1.4/maintenance/configurations/#coreoptions
"""

import re
import zlib

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.io.local import local_path
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_COUNTER = re.compile(r"-(\d+)\.[^-]*$")
_ENTROPY = ((0, 4), (4, 8), (8, 12), (12, 20))
"""Parts of the 20 lowest bits of a hash, as the names of nested directories."""


def external_file(table: FileStoreTable, bucket_directory: str, name: str) -> str | None:
    """Return the path of a new file in an external directory; None if it belongs in the table.

    The files of a writer, whose names are numbered, are distributed to the directories in turn.
    `bucket_directory` is relative to the table. Raises ConfigError if the directories in the
    options are invalid, UnsupportedError for a directory in another kind of storage than the table.
    """
    roots = external_roots(table)
    if not roots:
        return None
    counter = _COUNTER.search(name)
    stem = name[: counter.start()] if counter else name
    turn = zlib.crc32(stem.encode()) + (int(counter[1]) if counter else 0)
    directory = bucket_directory
    if honoured.EXTERNAL_STRATEGY.of(table.schema.options) == "entropy-inject":
        bits = f"{murmur3_32(name.encode()) & 0xFFFFF:020b}"
        directory = "/".join([directory, *(bits[start:end] for start, end in _ENTROPY)])
    return f"{roots[turn % len(roots)]}/{directory}/{name}"


def external_roots(table: FileStoreTable) -> tuple[str, ...]:
    """Return the directories outside of the table in which new files are written.

    Empty if the options do not require external paths. Raises ConfigError if no directory has the
    required scheme or a directory has no scheme, UnsupportedError for a directory in another kind
    of storage than the table.
    """
    options = table.schema.options
    strategy, paths = honoured.EXTERNAL_STRATEGY.of(options), honoured.EXTERNAL_PATHS.of(options)
    if strategy == "none" or not paths:
        return ()
    scheme = honoured.EXTERNAL_FS.of(options) if strategy == "specific-fs" else None
    roots = [_root(table, path.strip()) for path in paths]
    chosen = [root for root in roots if scheme is None or root.partition(":")[0] == scheme]
    if not chosen:
        raise ConfigError(
            f"table {table.name}: no path of '{honoured.EXTERNAL_PATHS.name}' has the scheme "
            f"'{scheme}' of '{honoured.EXTERNAL_FS.name}'"
        )
    return tuple(chosen)


def _root(table: FileStoreTable, path: str) -> str:
    scheme, colon, _ = path.partition(":")
    name = honoured.EXTERNAL_PATHS.name
    if not colon or "/" in scheme:
        raise ConfigError(f"table {table.name}: '{name}' = '{path}' needs a scheme, as file:///x")
    own = table.path.partition("://")[0] if "://" in table.path else "file"
    if scheme != own:
        raise UnsupportedError(
            f"table {table.name}: '{name}' = '{path}' is in another kind of storage than the "
            f"table ({own}); use a path with the scheme '{own}', or the strategy 'none'"
        )
    return (f"file:{local_path(path)}" if scheme == "file" else path).rstrip("/")


_MASK = 0xFFFFFFFF


def murmur3_32(data: bytes) -> int:
    """Return the Murmur3 hash of bytes, with seed 0, as an unsigned 32-bit number."""
    hashed, whole = 0, len(data) // 4 * 4
    for start in range(0, whole, 4):
        word = _mixed(int.from_bytes(data[start : start + 4], "little"))
        hashed = (_rotated(hashed ^ word, 13) * 5 + 0xE6546B64) & _MASK
    hashed ^= _mixed(int.from_bytes(data[whole:], "little")) ^ len(data)
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _MASK
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _MASK
    return hashed ^ hashed >> 16


def _mixed(word: int) -> int:
    return _rotated(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & _MASK
