"""Checks of JSON documents: a checksum after the end, and misspelt keys.

Snapshot and schema files have no checksum in the specification. Those written here end with one in
blanks, which are no part of a JSON document: whoever reads it finds what Java would have written,
and whoever writes it again leaves them out. Of a file without it only the keys can be looked at.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
"""

import re
import zlib
from collections.abc import Collection, Iterable

_NO_NAMES = frozenset({"", ".", ".."})
_BITS = str.maketrans("01", " \t")
_SEALED = re.compile(rb"(?P<body>.*\})\n(?P<sum>[ \t]{32})", re.DOTALL)


def sealed(document: bytes) -> bytes:
    """Return a JSON object with its CRC-32 after it, a blank for 0 and a tabulator for 1."""
    return document + b"\n" + _blanks(document)


def check_seal(document: bytes) -> None:
    """Raise ValueError if the document has a checksum that does not match its bytes."""
    match = _SEALED.fullmatch(document)
    if match and match["sum"] != _blanks(match["body"]):
        raise ValueError("the checksum behind its end is wrong: it was damaged or edited")


def _blanks(document: bytes) -> bytes:
    return f"{zlib.crc32(document):032b}".translate(_BITS).encode()


def refuse_misspelt(found: Iterable[str], known: Collection[str]) -> None:
    """Raise ValueError for a key that is a known one but for a single character.

    Keys that are not known belong to newer writers and are passed over. One that has lost its
    name would be passed over as well, and take what it says along.
    """
    for key in set(found) - set(known):
        for name in set(known) - set(found):
            if len(key) == len(name) and sum(a != b for a, b in zip(key, name, strict=True)) == 1:
                raise ValueError(f"it has a key {key!r} and none that is called '{name}'")


def file_name(name: str) -> str:
    """Return the name of a file that a document refers to.

    Raises ValueError if it may lead out of its folder.

    Readers open what they are referred to, and expiry deletes it.
    """
    if name in _NO_NAMES or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file in the folder of the table")
    return name
