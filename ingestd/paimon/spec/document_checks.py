"""Whether a JSON document still says what was written: a checksum in its last line, and its keys.

Snapshot and schema files have no checksum in the specification. Those written here end with one,
under a key that other readers pass over; of those without it only their keys can be looked at.
Specification: Snapshot, Schema.
"""

import re
import zlib
from collections.abc import Collection, Iterable

_KEY = "ingestd.crc32"
_END = b"\n}"
_SEALED = re.compile(
    rb'(?P<body>.*),\n  "' + re.escape(_KEY.encode()) + rb'": "(?P<sum>[0-9a-f]{8})"\n\}\s*',
    re.DOTALL,
)


def sealed(document: bytes) -> bytes:
    """A JSON object of several lines with its checksum as the last key."""
    if not document.endswith(_END):
        raise ValueError("only an object of several lines can be sealed")
    check = f',\n  "{_KEY}": "{zlib.crc32(document):08x}"'
    return document[: -len(_END)] + check.encode() + _END


def check_seal(document: bytes) -> None:
    """ValueError if the document has a checksum and it is not that of its bytes."""
    match = _SEALED.fullmatch(document)
    if match and zlib.crc32(match["body"] + _END) != int(match["sum"], 16):
        raise ValueError("the checksum at its end is wrong: it was damaged or edited")


def refuse_misspelt(found: Iterable[str], known: Collection[str]) -> None:
    """ValueError for a key that is a known one but for a single character.

    Keys that are not known belong to newer writers and are passed over. One that has lost its
    name would be passed over as well, and take what it says along.
    """
    for key in set(found) - set(known):
        for name in set(known) - set(found):
            if len(key) == len(name) and sum(a != b for a, b in zip(key, name, strict=True)) == 1:
                raise ValueError(f"it has a key {key!r} and none that is called '{name}'")
