"""Schemas from a registry with the protocol of Confluent or of Apicurio.

The schema of an id never changes, so cached schemas do not expire, and all clients of a registry in
a process share them. An unknown id is cached for 30 seconds. Karapace has the protocol of
Confluent; Apicurio has both, its own in versions 2 and 3 of its REST API.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, get_args
from urllib.parse import quote

from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaId, SchemaKind
from ingestd.errors import SourceError
from ingestd.http_request import one_line
from ingestd.kafka.registry_http import HITS, RegistryHttp, note
from ingestd.kafka.registry_reading import (
    Reference,
    RegistryCache,
    RegistryDocument,
    RegistryProtocol,
    SchemaReading,
    room,
)
from ingestd.kafka.registry_settings import RegistrySettings

_KINDS = frozenset(get_args(SchemaKind))


class ConfluentProtocol:
    """The protocol of Confluent's registry, in which the id of a schema is a number or a GUID.

    Methods raise SourceError if the registry does not respond or a response is invalid, and
    ConfigError if it rejects the credentials.
    """

    def __init__(self, http: RegistryHttp) -> None:
        self._http = http

    def by_id(self, schema_id: SchemaId) -> RegistryDocument | None:
        """Return the schema with this id; None if it does not exist."""
        path = f"/schemas/ids/{schema_id}"
        if isinstance(schema_id, str):
            groups = (schema_id[:8], schema_id[8:12], schema_id[12:16], schema_id[16:20])
            path = f"/schemas/guids/{'-'.join((*groups, schema_id[20:]))}"
        return self.version(path)

    def version(self, path: str) -> RegistryDocument | None:
        """Return the schema version at a path of the registry; None if it does not exist.

        `path` is from a reference or from `earlier`.
        """
        document = self._http.get(path)
        return None if document is None else _document(document)

    def earlier(self, schema_id: SchemaId) -> Iterator[str]:
        """Yield the paths of the versions before the schema with this id, newest first.

        At most 50 paths are yielded per subject.

        Yields nothing for a schema identified by a GUID, or if the registry does not report the
        subjects of a schema.
        """
        if isinstance(schema_id, str):
            return
        for stated in self._http.get_list(f"/schemas/ids/{schema_id}/versions") or ():
            version = _subject_version(stated)
            numbers = self._http.get_list(version.versions) or ()
            older = sorted(n for n in numbers if isinstance(n, int) and n < version.number)
            yield from (f"{version.versions}/{number}" for number in older[::-1][:_MOST_VERSIONS])


class _SubjectVersion(NamedTuple):
    """A version of a subject, as stated by a list of versions or by a reference.

    `versions` is the registry's path of all versions; `name` is the name in a reference, or empty.
    """

    versions: str
    number: int
    name: str


def _document(stated: Mapping[str, Any]) -> RegistryDocument:
    kind, text = stated.get("schemaType", "AVRO"), stated.get("schema")
    if not isinstance(kind, str) or kind not in _KINDS or not isinstance(text, str):
        raise SourceError(
            f"schema registry: a response has no schema of a known type ({one_line(kind)})"
        )
    references = stated.get("references") or []
    if not isinstance(references, list):
        raise SourceError("schema registry: the references of a schema are not a JSON array")
    versions = map(_subject_version, references)
    paths = (
        Reference(f"{version.versions}/{version.number}", version.name) for version in versions
    )
    return RegistryDocument(cast("SchemaKind", kind), text, tuple(paths))


def _subject_version(stated: object) -> _SubjectVersion:
    if isinstance(stated, dict):
        subject, version = stated.get("subject"), stated.get("version")
        name = stated.get("name", "")
        # Text with an unpaired surrogate is valid JSON, but cannot be sent.
        if isinstance(subject, str) and isinstance(version, int) and isinstance(name, str):
            quoted = quote(subject, safe="", errors="replace")
            return _SubjectVersion(f"/subjects/{quoted}/versions", version, name)
    raise SourceError("schema registry: a reference or a version is invalid")


_MOST_VERSIONS = 50
_PAGE = 500
_DEFAULT_GROUP = "default"


class ApicurioProtocol:
    """The protocol of Apicurio's registry, in which ids have a kind, such as `contentIds/7`.

    `api` is the version of the API. A number is an id of the kind `id_kind`: `contentIds` or
    `globalIds`. Methods raise SourceError if the registry does not respond or a response is
    invalid, and ConfigError if it rejects the credentials.
    """

    def __init__(self, http: RegistryHttp, api: int, id_kind: str) -> None:
        self._http = http
        self._content = "/content" if api > 2 else ""
        self._hits = "versions" if api > 2 else "artifacts"
        self._id_kind = id_kind

    def by_id(self, schema_id: SchemaId) -> RegistryDocument | None:
        """Return the schema with this id; None if it does not exist."""
        path = f"/ids/{self._kinded(schema_id)}"
        return self._document(path, path)

    def version(self, path: str) -> RegistryDocument | None:
        """Return the schema version at a path of the registry; None if it does not exist.

        `path` is from a reference or from `earlier`.
        """
        return self._document(path + self._content, path)

    def earlier(self, schema_id: SchemaId) -> Iterator[str]:
        """Yield the paths of the versions before the schema with this id, newest first.

        At most 50 paths are yielded per artifact.
        """
        kind, _, number = self._kinded(schema_id).partition("/")
        id_key = kind.removesuffix("s")
        hits = self._objects(f"/search/{self._hits}?{id_key}={number}", self._hits)
        for artifact in dict.fromkeys(map(_artifact_path, hits)):
            page = self._objects(f"{artifact}/versions?limit={_PAGE}", "versions")
            versions = [version for version in page if _is_version(version)]
            own = (v["globalId"] for v in versions if str(v.get(id_key)) == number)
            newest = max(own, default=0)
            older = [version for version in versions if version["globalId"] < newest]
            older.sort(key=lambda version: version["globalId"], reverse=True)
            for version in older[:_MOST_VERSIONS]:
                yield _version_path(artifact, version["version"])

    def _objects(self, path: str, key: str) -> list[Mapping[str, Any]]:
        """Return the objects under a key of the response; [] if the path does not exist.

        Raises SourceError if the response has no such objects, and the errors of `RegistryHttp`.
        """
        document = self._http.get(path)
        items = [] if document is None else document.get(key)
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise SourceError(f"schema registry: a response has no objects under {key!r}")
        return items

    def _kinded(self, schema_id: SchemaId) -> str:
        return schema_id if isinstance(schema_id, str) else f"{self._id_kind}/{schema_id}"

    def _document(self, content: str, path: str) -> RegistryDocument | None:
        text = self._http.get_text(content)
        references = None if text is None else self._http.get_list(f"{path}/references")
        if text is None or references is None:
            return None
        # Only some responses state the type of a schema.
        kind: SchemaKind = "AVRO" if _is_json(text) else "PROTOBUF"
        return RegistryDocument(kind, text, tuple(map(_reference, references)))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_version(stated: Mapping[str, Any]) -> bool:
    return isinstance(stated.get("globalId"), int) and isinstance(stated.get("version"), str)


def _reference(stated: object) -> Reference:
    if isinstance(stated, dict):
        version, name = stated.get("version"), stated.get("name")
        if isinstance(version, str) and isinstance(name, str):
            return Reference(_version_path(_artifact_path(stated), version), name)
    raise SourceError("schema registry: a reference is invalid")


def _version_path(artifact: str, version: str) -> str:
    return f"{artifact}/versions/{_quoted(version)}"


def _artifact_path(stated: Mapping[str, Any]) -> str:
    """Return the path of an artifact, which is in the default group if none is stated.

    Raises SourceError if no artifact is named.
    """
    group = stated.get("groupId") or _DEFAULT_GROUP
    artifact = stated.get("artifactId", stated.get("id"))
    if not isinstance(group, str) or not isinstance(artifact, str):
        raise SourceError("schema registry: a reference or a version names no artifact")
    return f"/groups/{_quoted(group)}/artifacts/{_quoted(artifact)}"


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")


_UNKNOWN_SECONDS = 30.0
_caches: dict[RegistrySettings, RegistryCache] = {}


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """Looks up schemas in a registry; picklable, because each process has a cache of its own."""

    settings: RegistrySettings

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """Return the schema with this id, with its references; None if the registry lacks any.

        Returns None also if references are circular. Raises SourceError if the registry does not
        respond, a response is invalid or the schema has more than 1000 references, and ConfigError
        if the registry rejects the credentials.
        """
        cache = _caches.setdefault(self.settings, RegistryCache())
        cached = cache.schemas.get(schema_id)
        if cached is not None:
            note(HITS)
            return cached
        if cache.unknown.get(schema_id, 0.0) > time.monotonic():
            return None
        # Two threads may request the same schema: cheaper than waiting for each other.
        schema = self._reading(cache).schema(schema_id)
        capacity = self.settings.cache_capacity
        if schema is None:
            cache.unknown = room(cache.unknown, capacity)
            cache.unknown[schema_id] = time.monotonic() + _UNKNOWN_SECONDS
            return None
        cache.schemas = room(cache.schemas, capacity)
        cache.schemas[schema_id] = schema
        return schema

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        """Return the earlier versions of a schema, newest first, at most 50 per subject.

        Versions with a missing or circular reference are left out, and the result is empty for a
        schema that Confluent's protocol identifies by a GUID. Raises SourceError if the registry
        does not respond, a response is invalid or a schema has more than 1000 references, and
        ConfigError if the registry rejects the credentials.
        """
        cache = _caches.setdefault(self.settings, RegistryCache())
        return self._reading(cache).earlier(schema_id)

    def _reading(self, cache: RegistryCache) -> SchemaReading:
        settings, http = self.settings, RegistryHttp(self.settings)
        protocol: RegistryProtocol = ConfluentProtocol(http)
        if settings.apicurio_api is not None:
            protocol = ApicurioProtocol(http, settings.apicurio_api, settings.id_kind)
        return SchemaReading(protocol, cache, settings.cache_capacity)


def forget_schemas() -> None:
    """Clear the cached schemas of all registries."""
    _caches.clear()
