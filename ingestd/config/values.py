"""Types of single values, which are parsed from strings and formatted as strings for display."""

import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
)

from ingestd.config.units import format_duration, format_size, parse_duration, parse_size
from ingestd.errors import ConfigError, IngestdError
from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.computed.metadata_columns import check_metadata
from ingestd.ingest.computed.row_filter import parse_filter
from ingestd.paimon.spec.data_types import DataType, parse_type

FROM_KEY = "from-key"
NO_KEYS = "none"


def is_http_url(text: str) -> bool:
    """Return whether a text is an absolute URL for HTTP or HTTPS, without blanks.

    Blanks are refused because the client would quote the URL, which may contain a secret, in the
    error of a request. Raises ValueError for an invalid host or port.
    """
    url = urlsplit(text)
    if not text.isprintable() or " " in text or url.port == 0:
        return False
    return url.scheme in {"http", "https"} and bool(url.hostname)


def _duration(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _size(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else value


def _names(value: object) -> object:
    """Parse a list that is given as a text, `a, b` or JSON, as in environment variables."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError("must be a list, or names separated by commas") from error
    return [name.strip() for name in value.split(",") if name.strip()]


def _rules(value: object) -> object:
    """Parse a list of sections that is given as JSON text, as in environment variables."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError("must be a list, or the JSON text of a list") from error


def _computed(value: object) -> object:
    """Return computed columns as texts by name. Raises ValueError if one cannot be parsed."""
    if not isinstance(value, Mapping):
        return value
    texts = {name: _expression(expression) for name, expression in value.items()}
    for name, text in texts.items():
        try:
            parse_computed(str(name), str(text))
        except IngestdError as error:
            raise ValueError(error.message) from error
    return texts


def _expression(value: object) -> object:
    """Convert `{expression: SQL}` to the text of a computed column; other values are unchanged."""
    if isinstance(value, Mapping) and list(value) == ["expression"]:
        return f"= {value['expression']}"
    return value


def _condition(text: str | None) -> str | None:
    try:
        if text is not None:
            parse_filter(text)
    except IngestdError as error:
        raise ValueError(error.message) from error
    return text


def _metadata(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    try:
        check_metadata(names or ())
    except IngestdError as error:
        raise ValueError(error.message) from error
    return names


def _keys(value: object) -> object:
    if value == FROM_KEY:
        return None
    return () if value == NO_KEYS else _names(value)


def _show_keys(keys: tuple[str, ...] | None) -> str | list[str]:
    if keys is None:
        return FROM_KEY
    return list(keys) or NO_KEYS


def _data_type(value: object) -> DataType:
    """Parse a type from a text, or from the JSON object of a nested type in a table's schema file.

    Raises ValueError if it is not a type.
    """
    if isinstance(value, DataType):
        return value
    try:
        return parse_type(_numbered(value) if isinstance(value, dict) else str(value))
    except IngestdError as error:
        raise ValueError(f"is not a column type: {error.message}") from error


def _numbered(value: object) -> Any:  # noqa: ANN401  (a document, texts for its numbers)
    """Convert the field ids in the document of a nested type from texts to numbers."""
    if isinstance(value, list):
        return [_numbered(child) for child in value]
    if not isinstance(value, dict):
        return value
    ids = value.get("id")
    numbers = {"id": int(ids)} if isinstance(ids, str) and ids.isdecimal() else {}
    return {**{name: _numbered(child) for name, child in value.items()}, **numbers}


def _address(value: object) -> str:
    host, colon, port = str(value).rpartition(":")
    if not colon or not host or "/" in host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"'{value}' is not HOST:PORT, such as 127.0.0.1:8080")
    return str(value)


Name = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=100)]


def check_pipeline_name(name: str) -> None:
    """Raise ConfigError if a name is not valid for a pipeline.

    A valid name has 1 to 100 characters, of a-z, 0-9, _ and -.
    """
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        raise ConfigError(
            f"'{name}' is not a name of a pipeline: use at most 100 characters of a-z, 0-9, _ and -"
        ) from error


TableName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=200)]
Texts = Mapping[str, str]
Duration = Annotated[
    float,
    BeforeValidator(_duration, json_schema_input_type=float | str),
    PlainSerializer(format_duration, return_type=str),
]
Size = Annotated[
    int,
    BeforeValidator(_size, json_schema_input_type=int | str),
    PlainSerializer(format_size, return_type=str),
]
Names = Annotated[
    tuple[str, ...], BeforeValidator(_names, json_schema_input_type=tuple[str, ...] | str)
]
PipelineNames = Annotated[
    tuple[Name, ...], BeforeValidator(_names, json_schema_input_type=tuple[Name, ...] | str)
]
OptionalNames = Annotated[
    tuple[str, ...] | None,
    BeforeValidator(_names, json_schema_input_type=tuple[str, ...] | str | None),
]
Metadata = Annotated[OptionalNames, AfterValidator(_metadata)]
Expressions = Annotated[
    Mapping[str, str],
    BeforeValidator(_computed, json_schema_input_type=Mapping[str, str | Mapping[str, str]]),
]
Condition = Annotated[str | None, AfterValidator(_condition)]
AsList = BeforeValidator(_rules)
Keys = Annotated[
    tuple[str, ...] | None,
    BeforeValidator(_keys, json_schema_input_type=tuple[str, ...] | str | None),
    PlainSerializer(_show_keys),
]
TypeText = Annotated[
    DataType,
    BeforeValidator(_data_type, json_schema_input_type=str | Mapping[str, Any]),
    PlainSerializer(str, return_type=str),
]
Address = Annotated[str, BeforeValidator(_address)]
