"""A YAML document as a tree of strings, with the file and line of every node.

Scalars stay strings, so that `08`, `1_000` or `on` are passed on verbatim in options; the model
converts them to types. A null stays None.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TypeAlias

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ingestd.errors import ConfigError

Path: TypeAlias = tuple[str | int, ...]
Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | None"

_MAX_NODES = 20_000
_MAX_DEPTH = 32


@dataclass(slots=True)
class Document:
    """A configuration as a tree, with the location of each node by its path.

    A location is `FILE:LINE` or `environment VARIABLE`. `name` is the name of the file.
    """

    name: str
    tree: dict[str, Tree] = field(default_factory=dict)
    locations: dict[Path, str] = field(default_factory=dict)

    def location_of(self, path: Path) -> str:
        """Return the location of a node, or of its nearest ancestor whose location is known.

        If none is known, return the name of the file.
        """
        for length in range(len(path), -1, -1):
            if path[:length] in self.locations:
                return self.locations[path[:length]]
        return self.name


def read_document(path: FilePath) -> Document:
    """Read a YAML file.

    Raises ConfigError if the file cannot be read or parsed, with the line of a syntax error.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: the configuration cannot be read: {error}") from error
    return parse_document(text, str(path))


def parse_document(text: str, name: str) -> Document:
    """Parse a YAML text, which must be a mapping or empty; `name` is the file's name in messages.

    Raises ConfigError with the line of the error if the text is invalid.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError(_yaml_message(error, name)) from error
    document = Document(name)
    if node is None:
        return document
    if not isinstance(node, MappingNode):
        raise ConfigError(f"{name}:{_line(node)}: the file must be a mapping of sections")
    tree = _Reader(document).read(node, ())
    if isinstance(tree, dict):
        document.tree = tree
    return document


class _Reader:
    """A converter of YAML nodes to a tree, which adds their locations to the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._nodes = 0

    def read(self, node: Node, path: Path) -> Tree:
        self._nodes += 1
        if self._nodes > _MAX_NODES or len(path) > _MAX_DEPTH:
            raise self._error(node, "the document is too large or too deep")
        self._document.locations[path] = self._location(node)
        if isinstance(node, MappingNode):
            return self._read_mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.read(child, (*path, index)) for index, child in enumerate(node.value)]
        return _scalar(node)

    def _read_mapping(self, node: MappingNode, path: Path) -> dict[str, Tree]:
        tree: dict[str, Tree] = {}
        lines: dict[Hashable, int] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                raise self._error(key, "a key must be a plain text; merge keys are not supported")
            name = str(key.value)
            if name in lines:
                raise self._error(key, f"'{name}' is given twice, first in line {lines[name]}")
            lines[name] = _line(key)
            tree[name] = self.read(value, (*path, name))
            self._document.locations[*path, name] = self._location(key)
        return tree

    def _location(self, node: Node) -> str:
        return f"{self._document.name}:{_line(node)}"

    def _error(self, node: Node, problem: str) -> ConfigError:
        return ConfigError(f"{self._location(node)}: {problem}")


def walk(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, str | None]]:
    """Yield the path and the value of every scalar in a tree; the value of a null is None."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from walk(value, (*path, name))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from walk(value, (*path, index))
    else:
        yield path, tree


def dotted(path: Path) -> str:
    """Return a path in dotted form, such as `sources.shop.topics[0]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def _scalar(node: Node) -> str | None:
    if node.tag == "tag:yaml.org,2002:null":
        return None
    return str(node.value)


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _yaml_message(error: yaml.YAMLError, name: str) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{name}:{mark.line + 1}:{mark.column + 1}: invalid YAML: {error.problem}"
    return f"{name}: invalid YAML: {type(error).__name__}"
