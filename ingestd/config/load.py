"""Load a configuration from a file and the environment, and report all of its errors at once.

Environment variables override keys: `INGESTD__SOURCES__SHOP__FORMAT=debezium-json`. Parts between
double underscores are keys, in capitals and with `_` for `-` and `.`. A variable for an unknown key
is an error, like an unknown key in the file.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath

from pydantic import ValidationError

from ingestd.config.allowed_keys import ConfigShape, nearest, normalized_key, shape_of
from ingestd.config.checks import cross_check
from ingestd.config.document import Document, Path, Tree, dotted, read_document
from ingestd.config.model import Config
from ingestd.config.secret_resolution import resolve_references
from ingestd.config.validation_errors import ValidationIssue, raise_issues, validation_errors_of


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A validated configuration and its source.

    `document` holds the texts as given, with the environment applied and references unresolved;
    relative paths are resolved against `folder`.
    """

    config: Config
    document: Document
    folder: FilePath


def load_config(path: FilePath, environ: Mapping[str, str] | None = None) -> LoadedConfig:
    """Load and check a configuration. Raises ConfigError with every error and its location.

    Variables of the environment, by default the environment of this process, override values of the
    file. Only the file system is accessed.
    """
    variables = os.environ if environ is None else environ
    return load_document(read_document(path), path.absolute().parent, variables)


def load_document(
    document: Document, folder: FilePath, variables: Mapping[str, str]
) -> LoadedConfig:
    """Validate a parsed document; relative paths are resolved against `folder`.

    `variables` is the environment; its overrides are applied to the document in place. Raises
    ConfigError with every error and its location.
    """
    shape = shape_of(Config)
    issues = apply_environment(document, shape, variables)
    tree, unresolved = resolve_references(document, variables, folder)
    issues += unresolved
    try:
        config = Config.model_validate(_without_nulls(tree))
    except ValidationError as error:
        raise_issues(document.name, issues + validation_errors_of(error, document, shape))
        raise
    raise_issues(document.name, issues + cross_check(config, document))
    return LoadedConfig(config, document, folder)


def _without_nulls(tree: Tree) -> Tree:
    """Return a tree without the keys whose value is null."""
    if isinstance(tree, dict):
        return {name: _without_nulls(child) for name, child in tree.items() if child is not None}
    return tree


_PREFIX = "INGESTD__"
_DOTTED_MAPS = ("kafka",)
_LOWER_CASE_MAPS = ("column-types",)


class _UnplacedError(Exception):
    """The name or the value of a variable does not fit the configuration."""


def apply_environment(
    document: Document, shape: ConfigShape, environ: Mapping[str, str]
) -> list[ValidationIssue]:
    """Apply all `INGESTD__` variables to the document; return an issue for each invalid one.

    `shape` has the keys of a configuration. The document is changed in place, also if there are
    issues.
    """
    issues = []
    for variable in sorted(name for name in environ if name.startswith(_PREFIX)):
        origin = f"environment {variable}"
        try:
            path, target = _resolve(variable, document, shape)
            value = _value(environ[variable], target)
        except _UnplacedError as error:
            issues.append(ValidationIssue(origin, str(error)))
            continue
        _put(document, path, value, origin)
    return issues


def _resolve(variable: str, document: Document, shape: ConfigShape) -> tuple[Path, ConfigShape]:
    """Return the path that a variable refers to, and the shape at the path."""
    path: Path = ()
    here: ConfigShape = shape
    tree: Tree = document.tree
    for word in variable[len(_PREFIX) :].split("__"):
        names = list(tree) if isinstance(tree, dict) else []
        if here.is_value:
            raise _UnplacedError(f"{dotted(path)} is a single value and has no key '{word}'")
        name = _key(word, here, names) if here.keys else _name(word, path, here, names)
        path = (*path, name)
        here = here.element or here.keys[name]
        tree = tree.get(name) if isinstance(tree, dict) else None
    return path, here


def _key(word: str, shape: ConfigShape, _: list[str]) -> str:
    matching = [key for key in shape.keys if normalized_key(key) == normalized_key(word)]
    if not matching:
        raise _UnplacedError(f"unknown key '{word}'{nearest(word, shape.keys)}")
    return matching[0]


def _name(word: str, path: Path, shape: ConfigShape, names: list[str]) -> str:
    """Return the key of a map that `word`, a part of an environment variable's name, stands for.

    This is the key of the file (one of `names`) that differs in spelling only, or else a new key.

    Raises _UnplacedError if several keys match, or if the spelling of a new key is unknown.
    """
    matching = [name for name in names if normalized_key(name) == normalized_key(word)]
    if len(matching) > 1:
        raise _UnplacedError(f"'{word}' may be any of {', '.join(matching)}; set it in the file")
    if matching:
        return matching[0]
    if shape.element is not None and not shape.element.is_value:
        return word.lower()
    if "." in word or "-" in word:
        return word
    if path[-1] in _DOTTED_MAPS:
        return word.lower().replace("_", ".")
    if path[-1] in _LOWER_CASE_MAPS:
        return word.lower()
    raise _UnplacedError(
        f"{dotted(path)} has no '{word.lower()}' whose real name could be taken from the file; "
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
        return {str(name): _texts(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_texts(child) for child in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _put(document: Document, path: Path, value: Tree, origin: str) -> None:
    """Set the value at a path, with its origin; a section is merged into the existing section."""
    if isinstance(value, dict) and value:
        for name, child in value.items():
            _put(document, (*path, name), child, origin)
        return
    tree = document.tree
    for length, step in enumerate(path[:-1], 1):
        below = tree.get(str(step))
        if not isinstance(below, dict):
            below = {}
            tree[str(step)] = below
            document.locations[path[:length]] = origin
        tree = below
    for descendant in [known for known in document.locations if known[: len(path)] == path]:
        del document.locations[descendant]
    tree[str(path[-1])] = value
    document.locations[path] = origin
