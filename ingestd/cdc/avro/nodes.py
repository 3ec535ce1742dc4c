"""Parse Avro schemas into trees of nodes, with names resolved.

Schemas whose values cannot be mapped to columns are rejected. Defaults and aliases do not affect
how messages are read, because each message is read with its writer schema.
Specification: https://avro.apache.org/docs/1.12.0/specification/#schema-declaration
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_MAX_DEPTH = 64
_MAX_NODES = 20_000
"""Maximum number of nodes in one schema; each use of a named type counts."""
_MAX_SYMBOLS = 1_000_000
"""Maximum number of enum symbols in one schema; each use of an enum counts."""
_LONGEST_NAME = 1_000
"""Maximum length of a full name, which each type in a namespace repeats."""


class AvroSchemaError(ValueError):
    """A schema is invalid, or its values cannot be mapped to columns; the message states why."""


@dataclass(frozen=True, slots=True, eq=False)
class AvroNode:
    """A type in a schema.

    `kind` is the name of a primitive or complex type; it is `nullable` for a union of null and
    another type, and `union` for all other unions. `properties` are all attributes of the
    declaration. `children` are the types of fields, items, values or branches, in order. `names`
    are the fields of a record or the symbols of an enum, `size` is the number of bytes of a fixed
    type, and `null_at` the index of null in a `nullable`. `cells` is the number of cells (single
    values, nested fields included) that a value takes, without the items of arrays and maps.
    """

    kind: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    children: tuple["AvroNode", ...] = ()
    names: tuple[str, ...] = ()
    size: int = 0
    null_at: int = 0
    cells: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", _cells(self.kind, self.children))

    def child(self, name: str) -> "AvroNode | None":
        """Return the type of a field of this record, or None if the record has no such field."""
        return self.children[self.names.index(name)] if name in self.names else None

    @property
    def item(self) -> "AvroNode":
        """The type of the elements of this array, or of the values of this map."""
        return self.children[0]

    @property
    def has_no_bytes(self) -> bool:
        """Whether values take no bytes: null, a fixed type of size 0, or a record of only these."""
        if self.kind == "record":
            return all(child.has_no_bytes for child in self.children)
        return self.kind == "null" or (self.kind == "fixed" and self.size == 0)

    @property
    def present(self) -> "AvroNode":
        """The type of the values that are not null; the node itself unless it is `nullable`."""
        return self.children[1 - self.null_at] if self.kind == "nullable" else self


def _cells(kind: str, children: tuple[AvroNode, ...]) -> int:
    if kind == "record":
        return 1 + sum(child.cells for child in children)
    if kind in ("nullable", "union"):
        return max((child.cells for child in children), default=1)
    return 1


def parse_avro(text: str, references: Iterable[str] = ()) -> AvroNode:
    """Parse an Avro schema, given as JSON text; return its root node.

    `references` are the texts of schemas whose named types the schema may use. Raises
    AvroSchemaError if the schema is invalid or not supported.
    """
    parser = _Parser()
    try:
        for reference in references:
            parser.declare(json.loads(reference))
        return parser.node(json.loads(text), "", 0)
    except AvroSchemaError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AvroSchemaError(f"the Avro schema cannot be read: {error!r}") from error


class _Parser:
    """A parser of declarations, with the named types declared so far and their namespaces."""

    def __init__(self) -> None:
        self._declared: dict[str, tuple[dict[str, Any], str]] = {}
        self._open: set[str] = set()
        self._count = 0
        self._symbols = 0

    def declare(self, document: Any) -> None:  # noqa: ANN401  (any JSON)
        """Declare the named types of a schema, so that other schemas can refer to them."""
        self.node(document, "", 0)

    def node(self, document: Any, namespace: str, depth: int) -> AvroNode:  # noqa: ANN401
        """Return the node of a type, given as decoded JSON.

        Names are relative to `namespace`. Raises AvroSchemaError if the schema is too deep or too
        large, and KeyError or TypeError if it is invalid.
        """
        self._count += 1
        if depth > _MAX_DEPTH or self._count > _MAX_NODES:
            raise AvroSchemaError("the Avro schema is too deep or too large")
        if isinstance(document, str):
            return self._named(document, namespace, depth)
        if isinstance(document, list):
            return self._union(document, namespace, depth)
        kind = document["type"]
        if not isinstance(kind, str):
            return self.node(kind, namespace, depth + 1)
        if kind in PRIMITIVES:
            return AvroNode(kind, document)
        if kind in ("array", "map"):
            inner = document["items" if kind == "array" else "values"]
            return AvroNode(kind, document, (self.node(inner, namespace, depth + 1),))
        if kind in ("record", "error", "enum", "fixed"):
            return self._declaration(document, namespace, depth)
        return self._named(kind, namespace, depth)

    def _named(self, name: str, namespace: str, depth: int) -> AvroNode:
        if name in PRIMITIVES:
            return AvroNode(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        node = self._declared.get(full) or self._declared.get(name)
        if node is None:
            raise AvroSchemaError(f"the Avro schema uses the type {name!r}, which is not declared")
        return self._declaration(*node, depth)

    def _declaration(self, document: dict[str, Any], namespace: str, depth: int) -> AvroNode:
        name, namespace = _full_name(document, namespace)
        kind = document["type"]
        self._declared[name] = (document, namespace)
        if kind == "enum":
            self._symbols += len(document["symbols"])
            if self._symbols > _MAX_SYMBOLS:
                raise AvroSchemaError("the Avro schema has too many symbols of enums")
            symbols = tuple(str(symbol) for symbol in document["symbols"])
            return AvroNode("enum", document, names=symbols)
        if kind == "fixed":
            return AvroNode("fixed", document, size=_size(document))
        if name in self._open:
            raise AvroSchemaError(f"the Avro type {name} contains itself: it has no columns")
        self._open.add(name)
        fields = document["fields"]
        children = tuple(self.node(_type_of(field), namespace, depth + 1) for field in fields)
        self._open.discard(name)
        names = tuple(str(field["name"]) for field in fields)
        if len(set(names)) < len(names):
            raise AvroSchemaError(f"the Avro type {name} has two fields of the same name")
        return AvroNode("record", document, children, names)

    def _union(self, branches: list[Any], namespace: str, depth: int) -> AvroNode:
        nodes = tuple(self.node(branch, namespace, depth + 1) for branch in branches)
        kinds = [node.kind for node in nodes]
        if len(nodes) == 1:
            # The value is still preceded by a branch number.
            return AvroNode("union", {}, nodes)
        if len(nodes) == 2 and kinds.count("null") == 1:
            return AvroNode("nullable", {}, nodes, null_at=kinds.index("null"))
        if not nodes:
            raise AvroSchemaError("the Avro schema has a union without types")
        return AvroNode("union", {}, nodes)


def _type_of(declared: dict[str, Any]) -> Any:  # noqa: ANN401  (any JSON)
    """Return the declared type of a field.

    If it is a primitive type, it gets the Connect attributes of the field.
    """
    kind = declared["type"]
    own = {name: value for name, value in declared.items() if name.startswith("connect.")}
    if own and isinstance(kind, str) and kind in PRIMITIVES:
        return {**own, "type": kind}
    return kind


def _full_name(document: dict[str, Any], namespace: str) -> tuple[str, str]:
    """Return the full name of a declaration, and the namespace for names inside it.

    Raises AvroSchemaError if the name is too long.
    """
    name = document["name"]
    if len(name) + len(document.get("namespace") or "") > _LONGEST_NAME:
        raise AvroSchemaError(f"the Avro schema has a name of more than {_LONGEST_NAME} characters")
    if "." in name:
        return name, name.rpartition(".")[0]
    inner = document.get("namespace", namespace) or ""
    return (f"{inner}.{name}" if inner else name), inner


def _size(document: dict[str, Any]) -> int:
    size = document["size"]
    if not isinstance(size, int) or not 0 <= size <= 1 << 20:
        raise AvroSchemaError(f"the Avro type {document['name']} has the size {size!r}")
    return size
