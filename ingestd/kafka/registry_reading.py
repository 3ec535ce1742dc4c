"""Look up a schema with all its references; this is independent of the registry's protocol."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaId, SchemaKind
from ingestd.errors import SourceError

_MOST_REFERENCES = 1000
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to another schema: its path in the registry, and its name in the schema."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class RegistryDocument:
    """A schema document as the registry returns it; its references are not resolved yet."""

    kind: SchemaKind
    text: str
    references: tuple[Reference, ...] = ()


class RegistryProtocol(Protocol):
    """The requests to a registry in the terms of its protocol.

    All methods raise SourceError if the registry does not respond or a response is invalid, and
    ConfigError if it rejects the credentials.
    """

    def by_id(self, schema_id: SchemaId) -> RegistryDocument | None:
        """Return the schema with this id; None if it does not exist."""
        ...

    def version(self, path: str) -> RegistryDocument | None:
        """Return the schema version at a path of the registry; None if it does not exist.

        `path` is from a reference or from `earlier`.
        """
        ...

    def earlier(self, schema_id: SchemaId) -> Iterator[str]:
        """Yield the paths of the versions before the schema with this id, newest first.

        If a schema has several subjects, the order is by subject.
        """
        ...


@dataclass(slots=True)
class RegistryCache:
    """Cached schemas by id, the time until which an id counts as unknown, and versions by path.

    Times are of the monotonic clock, in seconds.
    """

    schemas: dict[SchemaId, RegisteredSchema] = field(default_factory=dict)
    unknown: dict[SchemaId, float] = field(default_factory=dict)
    versions: dict[str, RegistryDocument] = field(default_factory=dict)


@dataclass(slots=True)
class _Opened:
    """A document whose references are being read; `reference` is None for the document looked up.

    `rest` are the references that have not been read yet.
    """

    document: RegistryDocument
    rest: Iterator[Reference]
    reference: Reference | None = None


class SchemaReading:
    """Reads schemas with their references; at most `capacity` versions are cached.

    Methods raise SourceError if the registry does not respond, a response is invalid or a schema
    has more than 1000 references, and ConfigError if the registry rejects the credentials.
    """

    def __init__(self, protocol: RegistryProtocol, cache: RegistryCache, capacity: int) -> None:
        self._protocol = protocol
        self._cache = cache
        self._capacity = capacity

    def schema(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """Return the schema with this id, with all its references.

        Returns None if the schema or one of its references does not exist, or if references are
        circular.
        """
        document = self._protocol.by_id(schema_id)
        return None if document is None else self._complete(document)

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        """Return the versions before the schema with this id, with their references, newest first.

        Versions with a missing or circular reference are left out.
        """
        versions = map(self._version, self._protocol.earlier(schema_id))
        schemas = (self._complete(version) for version in versions if version is not None)
        return tuple(schema for schema in schemas if schema is not None)

    def _complete(self, document: RegistryDocument) -> RegisteredSchema | None:
        """Return a schema with its references; None if one of them does not exist.

        Each reference follows those to which it refers. A circular reference counts as missing.
        Raises SourceError for too many references.
        """
        schemas: dict[str, RegisteredSchema] = {}
        opened: set[str] = set()
        stack = [_Opened(document, iter(document.references))]
        while stack:
            reference = next(stack[-1].rest, None)
            if reference is None:
                done = stack.pop()
                if done.reference is not None:
                    schemas[done.reference.path] = RegisteredSchema(
                        done.document.kind, done.document.text, (), done.reference.name
                    )
                continue
            if reference.path in schemas:
                continue
            if reference.path in opened:
                return None
            if len(opened) >= _MOST_REFERENCES:
                raise SourceError(
                    f"schema registry: a schema has more than {_MOST_REFERENCES} references"
                )
            opened.add(reference.path)
            referenced = self._version(reference.path)
            if referenced is None:
                return None
            stack.append(_Opened(referenced, iter(referenced.references), reference))
        return RegisteredSchema(document.kind, document.text, tuple(schemas.values()))

    def _version(self, path: str) -> RegistryDocument | None:
        document = self._cache.versions.get(path) or self._protocol.version(path)
        if document is not None:
            self._cache.versions = room(self._cache.versions, self._capacity)
            self._cache.versions[path] = document
        return document


def room(cache: dict[_Key, _Value], capacity: int) -> dict[_Key, _Value]:
    """Return `cache`, or a new, empty cache if `cache` has `capacity` entries or more."""
    return cache if len(cache) < capacity else {}
