"""Fields of messages that a native plan knows beforehand, or only looks over."""

from collections.abc import Mapping, Sequence

from ingestd.cdc.native.module import Spec
from ingestd.cdc.native.plan import NULL_SPEC

Field = tuple[str, bool, Spec]
NULL = b"null"
FLAG_SPEC: Spec = ("choice", (b"false", NULL))
"""What is false or null."""


def constant_fields(constants: Mapping[str, bytes], names: Sequence[str]) -> list[Field]:
    """Fields whose JSON text is that of the form; null may be absent."""
    return [constant_field(name, constants[name]) for name in names]


def constant_field(name: str, text: bytes) -> Field:
    """A field whose JSON text is known; null may be absent."""
    return (name, False, NULL_SPEC) if text == NULL else (name, True, ("literal", text))


def open_object(fields: Sequence[Field], *, nullable: bool = False) -> Spec:
    """An object with these fields and any others."""
    return ("object", nullable, False, tuple(fields))


def words_spec(words: Sequence[str]) -> Spec:
    """One of some words."""
    return ("choice", texts_of(words))


def texts_of(words: Sequence[str]) -> tuple[bytes, ...]:
    """Words as JSON."""
    return tuple(b'"%s"' % word.encode() for word in words)
