"""Detect damaged JSON documents by a checksum in trailing whitespace and by misspelt keys.

Snapshot and schema files have no checksum in the specification. Files written here end with a
checksum encoded as whitespace, which JSON parsers ignore: readers see the document that Java would
have written, and a program that rewrites the document drops the checksum. For files without a
checksum, only the keys are checked.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
"""

import re
import zlib
from collections.abc import Collection, Iterable

_NO_NAMES = frozenset({"", ".", ".."})
_BITS = str.maketrans("01", " \t")
_SEALED = re.compile(rb"(?P<body>.*\})\n(?P<sum>[ \t]{32})", re.DOTALL)


def sealed(document: bytes) -> bytes:
    """Return a JSON document with its CRC-32 appended as a newline and 32 blanks or tabs.

    A blank stands for the bit 0, a tab for 1; the highest bit is first.
    """
    return document + b"\n" + _blanks(document)


def check_seal(document: bytes) -> None:
    """Raise ValueError if the document has a checksum that does not match its bytes."""
    match = _SEALED.fullmatch(document)
    if match and match["sum"] != _blanks(match["body"]):
        raise ValueError("the checksum after its end is wrong: it was damaged or edited")


def _blanks(document: bytes) -> bytes:
    return f"{zlib.crc32(document):032b}".translate(_BITS).encode()


def refuse_misspelt(keys: Iterable[str], known: Collection[str]) -> None:
    """Raise ValueError for an unknown key that differs in one character from a missing known key.

    Other unknown keys are accepted, because newer writers may add keys. Without this check, a
    misspelt key and its value would be ignored, too.
    """
    for key in set(keys) - set(known):
        for name in set(known) - set(keys):
            if len(key) == len(name) and sum(a != b for a, b in zip(key, name, strict=True)) == 1:
                raise ValueError(f"it has a key {key!r} and none that is called '{name}'")


def file_name(name: str) -> str:
    """Return the name of a file that a document refers to, unchanged.

    Raises ValueError if the name could refer to a file outside the folder of the document: readers
    open referenced files, and expiry deletes them.
    """
    if name in _NO_NAMES or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file in the folder of the table")
    return name
