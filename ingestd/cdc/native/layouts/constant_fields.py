"""Nodes of fields with a known value, and of objects that are not read whole."""

from collections.abc import Mapping, Sequence

from ingestd.cdc.native.module import Spec
from ingestd.cdc.native.plan import NULL_SPEC

Field = tuple[str, bool, Spec]
NULL = b"null"
FLAG_SPEC: Spec = ("choice", (b"false", NULL))
"""JSON texts of false and null."""


def constant_fields(constants: Mapping[str, bytes], names: Sequence[str]) -> list[Field]:
    """Return nodes of fields with a known JSON text; a null may be absent."""
    return [constant_field(name, constants[name]) for name in names]


def constant_field(name: str, text: bytes) -> Field:
    """Return the node of a field with a known JSON text; a null may be absent."""
    return (name, False, NULL_SPEC) if text == NULL else (name, True, ("literal", text))


def open_object(fields: Sequence[Field], *, nullable: bool = False) -> Spec:
    """Return the node of an object with these fields and any others."""
    return ("object", nullable, False, tuple(fields))


def words_spec(words: Sequence[str]) -> Spec:
    """Return the node of a choice of words."""
    return ("choice", texts_of(words))


def texts_of(words: Sequence[str]) -> tuple[bytes, ...]:
    """Return words as JSON texts."""
    return tuple(b'"%s"' % word.encode() for word in words)
