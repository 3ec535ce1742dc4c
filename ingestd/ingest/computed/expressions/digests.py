"""Functions on the bytes of values: `hex`, and the hashes `md5`, `sha2` and `hmac`.

Hashes are lower-case hexadecimal text.

The key of `hmac` is a reference, `env:NAME` or `file:/PATH`, which is looked up in each process
that computes it, so that no expression, log or task contains the key.
"""

import hashlib
import hmac
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError, SecretLookupError
from ingestd.ingest.computed.expressions.cells import strict
from ingestd.ingest.computed.expressions.function import (
    INT,
    TEXT,
    Argument,
    Function,
    Plan,
    constant_number,
    constant_text,
    require,
)
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.data_types import BINARY_ROOTS, CHARACTER_ROOTS
from ingestd.paimon.spec.extension import Bytes, native_columns, text_parts
from ingestd.secret_references import UnresolvedError, resolve

_SHA2 = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}
_HMAC = ("sha256", "sha384", "sha512")
_NO_TEXT: Values = pa.scalar(None, pa.string())
_MOST_BYTES = 2**31 - 1
Digests = Callable[[Sequence[bytes]], list[bytes]]
"""A function that returns the digest of each value."""
HexDigests = Callable[[Values], Bytes]
"""A function that returns the digests of texts or bytes (n,) as hexadecimal text, joined."""


def _plan(name: str, arguments: Sequence[Argument], size: int, hex_of: HexDigests) -> Plan:
    """Plan a call that hashes its first argument; its other arguments are constants.

    `size` is the number of digits of a digest.
    """
    require(name, arguments[:1], CHARACTER_ROOTS | BINARY_ROOTS)
    own = arguments[0].type or TEXT
    hashed = own if own.root in BINARY_ROOTS else TEXT
    others = [INT if isinstance(argument.constant, int) else TEXT for argument in arguments[1:]]

    def run(values: Values, *_: Values) -> Values:
        return _hashed(values, size, hex_of)

    return Plan(TEXT, (hashed, *others), strict(run, pa.string()))


def _hashed(values: Values, size: int, hex_of: HexDigests) -> Values:
    """Return the digests of texts or bytes (n,) as hexadecimal text; null for null."""
    count = len(values)
    if size * count > _MOST_BYTES:
        raise pa.ArrowInvalid(f"{count} digests are too many for one array")
    text = pa.py_buffer(hex_of(values))
    text_offsets = pa.py_buffer((np.arange(count + 1, dtype=np.int32) * np.int32(size)).tobytes())
    texts: Values = pa.StringArray.from_buffers(count, text_offsets, text)
    if values.null_count == 0:
        return texts
    return pc.if_else(values.is_valid(), texts, _NO_TEXT)


def _in_python(digests_of: Digests) -> HexDigests:
    """Return a function that computes digests in Python, value by value."""

    def hex_of(values: Values) -> Bytes:
        _, bounds, data = values.buffers()
        offsets = np.frombuffer(bounds, np.int32, len(values) + 1, 4 * values.offset)
        content = bytes(memoryview(b"" if data is None else data)[offsets[0] : offsets[-1]])
        bounds_of_values = pairwise((offsets - offsets[0]).tolist())
        digests = digests_of([content[start:end] for start, end in bounds_of_values])
        return b"".join(digests).hex().encode()

    return hex_of


def _hex(arguments: Sequence[Argument]) -> Plan:
    """Plan HEX: the bytes of a value as upper-case hexadecimal text."""
    require("hex", arguments, CHARACTER_ROOTS | BINARY_ROOTS)
    own = arguments[0].type or TEXT

    def run(values: Values) -> Values:
        validity, bounds, data = values.buffers()
        offsets = np.frombuffer(bounds, np.int32, len(values) + 1, 4 * values.offset)
        first, last = int(offsets[0]), int(offsets[-1])
        if 2 * (last - first) > _MOST_BYTES:
            raise pa.ArrowInvalid("hexadecimal texts are too large for one array")
        text = memoryview(b"" if data is None else data)[first:last].hex().upper().encode()
        text_offsets = pa.py_buffer(((offsets - first) * 2).tobytes())
        texts: Values = pa.StringArray.from_buffers(len(values), text_offsets, pa.py_buffer(text))
        return texts if validity is None else pc.if_else(values.is_valid(), texts, _NO_TEXT)

    return Plan(TEXT, (own if own.root in BINARY_ROOTS else TEXT,), strict(run, pa.string()))


def _md5(arguments: Sequence[Argument]) -> Plan:
    digests_of = _in_python(
        lambda values: [hashlib.md5(value, usedforsecurity=False).digest() for value in values]
    )
    return _plan("md5", arguments, 32, digests_of)


def _sha2(arguments: Sequence[Argument]) -> Plan:
    bits = constant_number("the second argument of sha2", arguments[1], 0, 512)
    if bits not in _SHA2:
        raise ConfigError(f"the second argument of sha2 is 224, 256, 384 or 512, not {bits}")
    function, length = _SHA2[bits], bits or 256
    in_python = _in_python(lambda values: [function(value).digest() for value in values])

    def hex_of(values: Values) -> Bytes:
        native, parts = native_columns(), text_parts(values)
        if native is None or parts is None:
            return in_python(values)
        offsets, data, _, first = parts
        return native.sha2_texts(len(values), offsets, data, first, length)

    return _plan("sha2", arguments, length // 4, hex_of)


def _hmac(arguments: Sequence[Argument]) -> Plan:
    reference = constant_text("the second argument of hmac", arguments[1])
    algorithm = "sha256"
    if len(arguments) > 2:
        algorithm = constant_text("the third argument of hmac", arguments[2])
    if algorithm not in _HMAC:
        raise ConfigError(f"the third argument of hmac is one of {', '.join(_HMAC)}")
    key = _key(reference)
    digests_of = _in_python(lambda values: [hmac.digest(key, value, algorithm) for value in values])
    return _plan("hmac", arguments, int(algorithm.removeprefix("sha")) // 4, digests_of)


def _key(reference: str) -> bytes:
    """Return the key of `hmac`, looked up by a reference.

    Raises ConfigError if the text is not a reference, and SecretLookupError if the key cannot be
    looked up or is empty.
    """
    kind, _, name = reference.partition(":")
    if kind not in ("env", "file") or not name or (kind == "file" and not name.startswith("/")):
        raise ConfigError(
            "the second argument of hmac is a reference to its key: 'env:NAME' of an environment "
            "variable, or 'file:/PATH' of a file"
        )
    try:
        key = resolve(f"${{{reference}}}", os.environ, Path("/"))
    except UnresolvedError as error:
        raise SecretLookupError(f"the key of hmac on {platform.node()}: {error}") from error
    if not key:
        raise SecretLookupError(f"the key of hmac on {platform.node()}, {reference}, is empty")
    return key.encode()


DIGEST_FUNCTIONS: Mapping[str, Function] = {
    "hex": Function(1, 1, _hex),
    "md5": Function(1, 1, _md5),
    "sha2": Function(2, 2, _sha2),
    "hmac": Function(2, 3, _hmac),
}
