"""Schemas from a registry with the Confluent protocol: Confluent's own, Apicurio or Karapace.

A schema never changes under its id, so it is cached for the life of the process and shared by all
clients of the registry. An unknown id is cached for a short time only.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast, get_args
from urllib.parse import quote

from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaId, SchemaKind
from ingestd.errors import SourceError
from ingestd.http_request import shown
from ingestd.kafka.registry_http import HITS, RegistryHttp, note
from ingestd.kafka.registry_settings import RegistrySettings

_KINDS = frozenset(get_args(SchemaKind))
_UNKNOWN_SECONDS = 30.0
_MOST_REFERENCES = 1000
_MOST_VERSIONS = 50
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(slots=True)
class _Cache:
    schemas: dict[SchemaId, RegisteredSchema] = field(default_factory=dict)
    unknown: dict[SchemaId, float] = field(default_factory=dict)
    versions: dict[str, Mapping[str, Any]] = field(default_factory=dict)


_caches: dict[RegistrySettings, _Cache] = {}


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """A `SchemaLookup` in a registry; small and picklable, because the process holds its cache."""

    settings: RegistrySettings

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """Return the schema of an id with its references; None if the registry does not have it.

        Raises SourceError if the registry does not respond, ConfigError if it rejects the
        credentials.
        """
        cache = _caches.setdefault(self.settings, _Cache())
        cached = cache.schemas.get(schema_id)
        if cached is not None:
            note(HITS)
            return cached
        if cache.unknown.get(schema_id, 0.0) > time.monotonic():
            return None
        # Two threads may request the same schema: cheaper than waiting for each other.
        schema = _Reading(RegistryHttp(self.settings), cache).schema(schema_id)
        capacity = self.settings.cache_capacity
        if schema is None:
            cache.unknown = _room(cache.unknown, capacity)
            cache.unknown[schema_id] = time.monotonic() + _UNKNOWN_SECONDS
            return None
        cache.schemas = _room(cache.schemas, capacity)
        cache.schemas[schema_id] = schema
        return schema

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        """Return the earlier versions of a schema, newest first, at most 50 per subject.

        Returns none for a schema identified by a GUID. Raises SourceError and ConfigError as
        `find`.
        """
        cache = _caches.setdefault(self.settings, _Cache())
        if isinstance(schema_id, str):
            return ()
        return _Reading(RegistryHttp(self.settings), cache).earlier(schema_id)


def forget_schemas() -> None:
    """Clear the cached schemas of all registries."""
    _caches.clear()


class _Reading:
    """One look-up, which reads schemas with all their references."""

    def __init__(self, http: RegistryHttp, cache: _Cache) -> None:
        self._http = http
        self._cache = cache
        self._references: dict[str, RegisteredSchema] = {}

    def schema(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """Return the schema; None if it or one of its references does not exist."""
        path = f"/schemas/ids/{schema_id}"
        if isinstance(schema_id, str):
            groups = (schema_id[:8], schema_id[8:12], schema_id[12:16], schema_id[16:20])
            path = f"/schemas/guids/{'-'.join((*groups, schema_id[20:]))}"
        document = self._http.get(path)
        if document is None or not self._read_references(document):
            return None
        return _schema(document, tuple(self._references.values()), "")

    def earlier(self, schema_id: int) -> tuple[RegisteredSchema, ...]:
        """Return the earlier versions of a schema with their references, newest first per subject.

        Versions with a missing reference are left out. Returns none if the registry does not report
        the subjects of a schema.
        """
        schemas: list[RegisteredSchema] = []
        for version in self._http.get_list(f"/schemas/ids/{schema_id}/versions") or ():
            subject_version = _subject_version(version)
            numbers = self._http.get_list(subject_version.versions) or ()
            older = sorted(n for n in numbers if isinstance(n, int) and n < subject_version.version)
            for number in older[::-1][:_MOST_VERSIONS]:
                document = self._version(f"{subject_version.versions}/{number}")
                self._references.clear()
                if document is not None and self._read_references(document):
                    schemas.append(_schema(document, tuple(self._references.values()), ""))
        return tuple(schemas)

    def _read_references(self, document: Mapping[str, Any]) -> bool:
        """Read the references of a document, dependencies first; return whether all exist.

        A circular reference counts as missing. Raises SourceError for too many references.
        """
        opened: set[str] = set()
        stack = [_Opened(document, _references_of(document))]
        while stack:
            reference = next(stack[-1].rest, None)
            if reference is None:
                done = stack.pop()
                if done.subject_version is not None:
                    self._references[done.subject_version.path] = _schema(
                        done.document, (), done.subject_version.name
                    )
                continue
            if reference.path in self._references:
                continue
            if reference.path in opened:
                return False
            if len(opened) >= _MOST_REFERENCES:
                raise SourceError(
                    f"schema registry: a schema has more than {_MOST_REFERENCES} references"
                )
            opened.add(reference.path)
            referenced = self._version(reference.path)
            if referenced is None:
                return False
            stack.append(_Opened(referenced, _references_of(referenced), reference))
        return True

    def _version(self, path: str) -> Mapping[str, Any] | None:
        document = self._cache.versions.get(path) or self._http.get(path)
        if document is not None:
            self._cache.versions = _room(self._cache.versions, self._http.settings.cache_capacity)
            self._cache.versions[path] = document
        return document


@dataclass(frozen=True, slots=True)
class _SubjectVersion:
    """A version of a subject, as stated by a list of versions or by a reference.

    `versions` is the registry's path of all versions; `name` is the name in a reference, or empty.
    """

    versions: str
    version: int
    name: str

    @property
    def path(self) -> str:
        return f"{self.versions}/{self.version}"


@dataclass(frozen=True, slots=True)
class _Opened:
    """A document whose references are being read; `subject_version` is None for the first."""

    document: Mapping[str, Any]
    rest: Iterator[_SubjectVersion]
    subject_version: _SubjectVersion | None = None


def _references_of(document: Mapping[str, Any]) -> Iterator[_SubjectVersion]:
    references = document.get("references") or []
    if not isinstance(references, list):
        raise SourceError("schema registry: the references of a schema are not a JSON array")
    return map(_subject_version, references)


def _subject_version(stated: object) -> _SubjectVersion:
    if isinstance(stated, dict):
        subject, version = stated.get("subject"), stated.get("version")
        name = stated.get("name", "")
        # Text with an unpaired surrogate is valid JSON, but cannot be sent.
        if isinstance(subject, str) and isinstance(version, int) and isinstance(name, str):
            quoted = quote(subject, safe="", errors="replace")
            return _SubjectVersion(f"/subjects/{quoted}/versions", version, name)
    raise SourceError("schema registry: a reference or a version is invalid")


def _schema(
    document: Mapping[str, Any], references: tuple[RegisteredSchema, ...], name: str
) -> RegisteredSchema:
    kind, text = document.get("schemaType", "AVRO"), document.get("schema")
    if not isinstance(kind, str) or kind not in _KINDS or not isinstance(text, str):
        raise SourceError(
            f"schema registry: a response has no schema of a known type ({shown(kind)})"
        )
    return RegisteredSchema(cast("SchemaKind", kind), text, references, name)


def _room(cache: dict[_Key, _Value], capacity: int) -> dict[_Key, _Value]:
    """Return the cache, or an empty cache if it is full."""
    return cache if len(cache) < capacity else {}
