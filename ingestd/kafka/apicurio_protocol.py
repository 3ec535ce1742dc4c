"""The protocol of Apicurio Registry, versions 2 and 3 of its REST API."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ingestd.cdc.schema_lookup import SchemaId, SchemaKind
from ingestd.errors import SourceError
from ingestd.kafka.registry_http import RegistryHttp
from ingestd.kafka.registry_reading import Reference, RegistryDocument

_MOST_VERSIONS = 50
_PAGE = 500
_DEFAULT_GROUP = "default"


class ApicurioProtocol:
    """A `RegistryProtocol`. The id of a schema contains its kind, such as `contentIds/7`.

    `api` is the version of the API. A number is an id of the kind `id_kind`: `contentIds` or
    `globalIds`.
    """

    def __init__(self, http: RegistryHttp, api: int, id_kind: str) -> None:
        self._http = http
        self._content = "/content" if api > 2 else ""
        self._hits = "versions" if api > 2 else "artifacts"
        self._id_kind = id_kind

    def by_id(self, schema_id: SchemaId) -> RegistryDocument | None:
        """Return the schema of an id; None if it does not exist."""
        path = f"/ids/{self._kinded(schema_id)}"
        return self._document(path, path)

    def version(self, path: str) -> RegistryDocument | None:
        """Return the version at a path; None if it does not exist."""
        return self._document(path + self._content, path)

    def earlier(self, schema_id: SchemaId) -> Iterator[str]:
        """Return the paths of the versions before a schema, at most 50 for each artifact."""
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
        """Return the objects under a key of the response; none if the path does not exist."""
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
    """Return the path of an artifact; the group is omitted if it is the default group."""
    group = stated.get("groupId") or _DEFAULT_GROUP
    artifact = stated.get("artifactId", stated.get("id"))
    if not isinstance(group, str) or not isinstance(artifact, str):
        raise SourceError("schema registry: a reference or a version names no artifact")
    return f"/groups/{_quoted(group)}/artifacts/{_quoted(artifact)}"


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")
