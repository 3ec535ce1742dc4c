"""Schemas of a registry that speaks the Confluent protocol, as Apicurio and Karapace do too.

A schema never changes under its id, so what was found is kept as long as the process lives, and
shared by all who ask the same registry. That an id is unknown is kept for a short while only.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args
from urllib.parse import quote

from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaId, SchemaKind
from ingestd.errors import SourceError
from ingestd.kafka.registry_http import RegistryHttp, RegistrySettings
from ingestd.kafka.registry_tally import HITS, note

_KINDS = frozenset(get_args(SchemaKind))
_UNKNOWN_SECONDS = 30.0
_MOST_REFERENCES = 1000
_MOST_VERSIONS = 50


@dataclass(slots=True)
class _Cache:
    lock: threading.Lock = field(default_factory=threading.Lock)
    found: dict[SchemaId, RegisteredSchema] = field(default_factory=dict)
    unknown: dict[SchemaId, float] = field(default_factory=dict)
    versions: dict[str, Mapping[str, Any]] = field(default_factory=dict)


_caches: dict[RegistrySettings, _Cache] = {}


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """A `SchemaLookup`; small and picklable, for what it found is kept apart."""

    settings: RegistrySettings

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """The schema of an id with its references; None if the registry does not have it.

        Raises SourceError if it did not answer, ConfigError if it will not have us.
        """
        cache = _caches.setdefault(self.settings, _Cache())
        with cache.lock:
            known = cache.found.get(schema_id)
            if known is not None:
                note(HITS)
                return known
            if cache.unknown.get(schema_id, 0.0) > time.monotonic():
                return None
            found = _Reading(RegistryHttp(self.settings), cache.versions).schema(schema_id)
            if found is None:
                if len(cache.unknown) >= self.settings.cache_capacity:
                    cache.unknown.clear()
                cache.unknown[schema_id] = time.monotonic() + _UNKNOWN_SECONDS
                return None
            if len(cache.found) >= self.settings.cache_capacity:
                cache.found.clear()
                cache.versions.clear()
            cache.found[schema_id] = found
            return found

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        """The versions before a schema in its subjects, the newest first, up to a bound.

        None for one that is named by a GUID. Raises SourceError and ConfigError as `find`.
        """
        cache = _caches.setdefault(self.settings, _Cache())
        if isinstance(schema_id, str):
            return ()
        with cache.lock:
            return _Reading(RegistryHttp(self.settings), cache.versions).earlier(schema_id)


def forget_schemas() -> None:
    """Empty what this process knows of all registries."""
    _caches.clear()


class _Reading:
    """One schema being read with all that it refers to; `versions` are answers by path."""

    def __init__(self, http: RegistryHttp, versions: dict[str, Mapping[str, Any]]) -> None:
        self._http = http
        self._versions = versions
        self._references: dict[tuple[str, int], RegisteredSchema] = {}
        self._open: set[tuple[str, int]] = set()

    def schema(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """The schema; None if it, or one that it refers to, is not there."""
        place = f"/schemas/ids/{schema_id}"
        if isinstance(schema_id, str):
            parts = (schema_id[:8], schema_id[8:12], schema_id[12:16], schema_id[16:20])
            place = f"/schemas/guids/{'-'.join((*parts, schema_id[20:]))}"
        document = self._http.get(place)
        if document is None or not self._read_references(document):
            return None
        return _schema(document, tuple(self._references.values()), "")

    def earlier(self, schema_id: int) -> tuple[RegisteredSchema, ...]:
        """Versions before a schema with what they refer to; those that are not whole are left out.

        A registry that cannot tell where a schema is registered has none.
        """
        found: list[RegisteredSchema] = []
        for one in self._http.get_list(f"/schemas/ids/{schema_id}/versions") or ():
            try:
                subject, version = _place(one)
            except (KeyError, TypeError, ValueError) as error:
                raise SourceError(f"schema registry: a version is unreadable: {error}") from error
            versions = f"/subjects/{quote(subject, safe='')}/versions"
            numbers = self._http.get_list(versions) or ()
            older = sorted((n for n in numbers if isinstance(n, int) and n < version), reverse=True)
            for number in older[:_MOST_VERSIONS]:
                document = self._version(f"{versions}/{number}")
                self._references.clear()
                self._open.clear()
                if document is not None and self._read_references(document):
                    found.append(_schema(document, tuple(self._references.values()), ""))
        return tuple(found)

    def _read_references(self, document: Mapping[str, Any]) -> bool:
        """Read what a document refers to, what it uses first; whether all is there."""
        for reference in document.get("references") or ():
            try:
                name, where = str(reference["name"]), _place(reference)
            except (KeyError, TypeError, ValueError) as error:
                raise SourceError(f"schema registry: a reference is unreadable: {error}") from error
            if where in self._references:
                continue
            if where in self._open or len(self._open) >= _MOST_REFERENCES:
                return False
            self._open.add(where)
            subject, version = where
            found = self._version(f"/subjects/{quote(subject, safe='')}/versions/{version}")
            if found is None or not self._read_references(found):
                return False
            self._references[where] = _schema(found, (), name)
        return True

    def _version(self, path: str) -> Mapping[str, Any] | None:
        found = self._versions.get(path) or self._http.get(path)
        if found is not None:
            self._versions[path] = found
        return found


def _place(reference: Mapping[str, Any]) -> tuple[str, int]:
    return str(reference["subject"]), int(reference["version"])


def _schema(
    document: Mapping[str, Any], references: tuple[RegisteredSchema, ...], name: str
) -> RegisteredSchema:
    kind, text = document.get("schemaType", "AVRO"), document.get("schema")
    if kind not in _KINDS or not isinstance(text, str):
        raise SourceError(f"schema registry: an answer holds no schema of a known type ({kind!r})")
    return RegisteredSchema(cast("SchemaKind", kind), text, references, name)
