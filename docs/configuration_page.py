"""configuration.md, from the model of the configuration."""

import json
import types
import typing
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from ingestd.config.model import Config
from ingestd.config.table_sections import (
    DefaultsSection,
    SchemaSection,
    TableSchemaSection,
    TableSection,
)

HEAD = """# Configuration

Written by `make docs` from `ingestd/config/model.py`. One YAML file is one pipeline; unknown keys
are errors. `NAME` stands for a name of your own. Any scalar can be overridden by an environment
variable: `INGESTD__` and the path with two underscores between its parts, in capitals, hyphens as
underscores (`INGESTD__SOURCES__SHOP__FORMAT`). Values may hold `${env:NAME}` and `${file:PATH}`. A
commented example of everything is [config/ingestd.yaml](../config/ingestd.yaml).

| key | type | default | what it does |
|---|---|---|---|"""


def configuration_page() -> str:
    """The page as text."""
    rows = [
        f"| `{key}` | {kind} | {default} | {text} |" for key, kind, default, text in keys(Config)
    ]
    return "\n".join([HEAD, *rows]) + "\n"


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Key path, type, default and description of every leaf."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or field.validation_alias or name}"
        inner, named = section(field.annotation)
        kind = kind_of(field.annotation, field.metadata) if inner is None else ""
        if inner is not None:
            yield from keys(inner, f"{path}{named}.")
        elif name in OF_DEFAULTS.get(model, {}):
            merged = "; merged by name" if kind.startswith("map") else ""
            yield path, kind, "–", f"As in `defaults`{merged}."
        else:
            yield path, kind, default_of(field), text_of(field)


OF_DEFAULTS: Mapping[type[BaseModel], Mapping[str, FieldInfo]] = {
    TableSection: DefaultsSection.model_fields,
    TableSchemaSection: SchemaSection.model_fields,
}
"""Keys of sections of one table that are described in those of all tables."""


def section(annotation: object) -> tuple[type[BaseModel] | None, str]:
    """The model inside an annotation, and what stands between: a name in a map, [] in a list."""
    for part in parts(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part, ""
        origin = typing.get_origin(part)
        if origin in {dict, Mapping, tuple}:
            inner, _ = section(typing.get_args(part)[0 if origin is tuple else 1])
            if inner is not None:
                return inner, "[]" if origin is tuple else ".NAME"
    return None, ""


def parts(annotation: object) -> tuple[object, ...]:
    """Members of a union, of what Annotated wraps, or the annotation itself."""
    origin = typing.get_origin(annotation)
    if origin in {typing.Union, types.UnionType}:
        return tuple(p for member in typing.get_args(annotation) for p in parts(member))
    if origin is typing.Annotated:
        return parts(typing.get_args(annotation)[0])
    return (annotation,)


def kind_of(annotation: object, metadata: Sequence[object] = ()) -> str:
    """A type for people."""
    special = [KINDS[name] for name in map(parser_of, metadata) if name in KINDS]
    if special:
        return special[0]
    if typing.get_origin(annotation) is typing.Annotated:
        inner, *rest = typing.get_args(annotation)
        return kind_of(inner, rest)
    words = []
    for part in parts(annotation):
        origin, arguments = typing.get_origin(part), typing.get_args(part)
        if origin is typing.Literal:
            words.append(" or ".join(f"`{value}`" for value in arguments))
        elif origin in {tuple, list, frozenset}:
            words.append(f"list of {kind_of(arguments[0])}")
        elif origin is not None:
            words.append(f"map of {kind_of(arguments[1])}")
        elif part is not type(None):
            words.append(NAMES[getattr(part, "__name__", "")])
    return " or ".join(words)


def parser_of(metadata: object) -> str:
    """Name of the function that reads a value from text."""
    return getattr(getattr(metadata, "func", None), "__name__", "")


NAMES = {"str": "text", "int": "number", "float": "number", "bool": "`true` or `false`"}
KINDS = {
    "_duration": "duration",
    "_size": "size",
    "_names": "list of text",
    "_keys": "`from-key`, `none` or list of text",
    "_data_type": "type",
    "_address": "HOST:PORT",
}


def default_of(field: FieldInfo) -> str:
    """The default as it would stand in the file; required fields say so."""
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True)
    shown = TypeAdapter(field.rebuild_annotation()).dump_python(value, mode="json")
    if shown is None or shown in ([], {}, ""):
        return "–"
    text = shown if isinstance(shown, str) else json.dumps(shown)
    return f"`{text}`".replace("|", "\\|")


def text_of(field: FieldInfo) -> str:
    """The description on one line."""
    return " ".join((field.description or "").split()).replace("|", "\\|")
