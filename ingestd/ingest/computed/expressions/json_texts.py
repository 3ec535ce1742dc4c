"""The function `json_value`: the scalar at a path of a JSON text, as in SQL."""

import re
from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.cells import strict
from ingestd.ingest.computed.expressions.function import (
    TEXT,
    Argument,
    Function,
    Plan,
    constant_text,
    require,
)
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS

_STEP = re.compile(r'\.([A-Za-z_]\w*)|\[(\d{1,9})\]|\."((?:[^"\\]|\\.)*)"')
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_ANY = msgspec.json.Decoder()
Path = tuple[str | int, ...]


def _parse_path(text: str) -> Path:
    """Return the names and indices of a path such as `$.lines[0]."unit price"`.

    Raises ConfigError if the path is invalid.
    """
    steps: list[str | int] = []
    at = 1
    while at < len(text) and (match := _STEP.match(text, at)) is not None:
        name, index, quoted = match.groups()
        if index is not None:
            steps.append(int(index))
        else:
            steps.append(name if name is not None else _unquoted(quoted))
        at = match.end()
    if not text.startswith("$") or at < len(text):
        raise ConfigError(
            f"the path '{text}' of json_value is not like $.name[0].\"other name\" (without "
            "wildcards, filters and modes)"
        )
    return tuple(steps)


def _unquoted(quoted: str) -> str:
    try:
        return _TEXT.decode(f'"{quoted}"')
    except msgspec.DecodeError as error:
        raise ConfigError(f'the name "{quoted}" in the path of json_value: {error}') from error


def scalar_at(text: bytes, path: Path) -> str | None:
    """Return the scalar at a path of a JSON text, as text.

    Numbers keep their digits. Returns None for null, an object, an array, a path that does not
    exist, and a text that is not JSON.
    """
    try:
        _ANY.decode(text)  # an error beside the path counts, too
        for step in path:
            if isinstance(step, str):
                text = bytes(_OBJECT.decode(text)[step])
            else:
                text = bytes(_ARRAY.decode(text)[step])
        if text[:1] == b'"':
            return _TEXT.decode(text)
    except (msgspec.DecodeError, KeyError, IndexError, RecursionError):
        return None
    text = text.strip()
    return None if text == b"null" or text[:1] in (b"{", b"[", b"") else text.decode()


def _json_value(arguments: Sequence[Argument]) -> Plan:
    require("json_value", arguments, CHARACTER_ROOTS)
    path = _parse_path(constant_text("the second argument of json_value", arguments[1]))

    def run(texts: Values, _: Values) -> Values:
        # Repeated documents are read once.
        encoded = texts.dictionary_encode()
        scalars = [scalar_at(text.encode(), path) for text in encoded.dictionary.to_pylist()]
        return pa.array(scalars, pa.string()).take(encoded.indices)

    return Plan(TEXT, (TEXT, TEXT), strict(run, pa.string()))


JSON_FUNCTIONS: Mapping[str, Function] = {"json_value": Function(2, 2, _json_value)}
