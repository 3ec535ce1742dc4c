"""Environment variables that override keys: `INGESTD__SOURCES__SHOP__FORMAT=debezium-json`.

Parts between double underscores name keys, in capitals and with `_` for `-` and `.`. A variable
that names no key is an error, like an unknown key in the file.
"""

import json
from collections.abc import Mapping

from ingestd.config.document import Document, Path, Tree, dotted
from ingestd.config.shape import ConfigShape, nearest, plain
from ingestd.config.validation_errors import ValidationIssue

PREFIX = "INGESTD__"
_DOTTED_MAPS = ("kafka",)
_LOWER_CASE_MAPS = ("column-types",)


class _UnplacedError(Exception):
    """The name or the value of a variable does not fit the configuration."""


def apply_environment(
    document: Document, shape: ConfigShape, environ: Mapping[str, str]
) -> list[ValidationIssue]:
    """Apply all `INGESTD__` variables to the document and return the errors."""
    issues = []
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        place = f"environment {variable}"
        try:
            path, target = _resolve(variable, document, shape)
            value = _value(environ[variable], target)
        except _UnplacedError as error:
            issues.append(ValidationIssue(place, str(error)))
            continue
        _put(document, path, value, place)
    return issues


def _resolve(variable: str, document: Document, shape: ConfigShape) -> tuple[Path, ConfigShape]:
    """Return the path that a variable names, and the shape at it."""
    path: Path = ()
    here: ConfigShape = shape
    tree: Tree = document.tree
    for part in variable[len(PREFIX) :].split("__"):
        given = list(tree) if isinstance(tree, dict) else []
        if here.is_value:
            raise _UnplacedError(f"{dotted(path)} is a single value, there is no '{part}' in it")
        name = _key(part, here, given) if here.keys else _name(part, path, here, given)
        path = (*path, name)
        here = here.element or here.keys[name]
        tree = tree.get(name) if isinstance(tree, dict) else None
    return path, here


def _key(part: str, shape: ConfigShape, _: list[str]) -> str:
    found = [key for key in shape.keys if plain(key) == plain(part)]
    if not found:
        raise _UnplacedError(f"unknown key '{part}'{nearest(part, shape.keys)}")
    return found[0]


def _name(part: str, path: Path, shape: ConfigShape, given: list[str]) -> str:
    """Return the name of a map entry: one that the file has, else a new one."""
    found = [name for name in given if plain(name) == plain(part)]
    if len(found) > 1:
        raise _UnplacedError(f"'{part}' may be any of {', '.join(found)}; set it in the file")
    if found:
        return found[0]
    if shape.element is not None and not shape.element.is_value:
        return part.lower()
    if "." in part or "-" in part:
        return part
    if path[-1] in _DOTTED_MAPS:
        return part.lower().replace("_", ".")
    if path[-1] in _LOWER_CASE_MAPS:
        return part.lower()
    raise _UnplacedError(
        f"{dotted(path)} has no '{part.lower()}' whose real name could be taken from the file; "
        "write the key there, with the value ${env:NAME}"
    )


def _value(text: str, shape: ConfigShape) -> Tree:
    if shape.is_value:
        return text
    try:
        document = json.loads(text, parse_int=str, parse_float=str)
    except ValueError as error:
        raise _UnplacedError(f"a whole section must be given as a JSON object: {error}") from error
    if not isinstance(document, dict):
        raise _UnplacedError("a whole section must be given as a JSON object")
    return _texts(document)


def _texts(value: object) -> Tree:
    if isinstance(value, dict):
        return {str(name): _texts(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_texts(one) for one in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _put(document: Document, path: Path, value: Tree, place: str) -> None:
    """Set a value; a section is merged into the existing one key by key."""
    if isinstance(value, dict) and value:
        for name, one in value.items():
            _put(document, (*path, name), one, place)
        return
    tree = document.tree
    for length, part in enumerate(path[:-1], 1):
        below = tree.get(str(part))
        if not isinstance(below, dict):
            below = {}
            tree[str(part)] = below
            document.places[path[:length]] = place
        tree = below
    for known in [one for one in document.places if one[: len(path)] == path]:
        del document.places[known]
    tree[str(path[-1])] = value
    document.places[path] = place
