"""The protocol of Confluent's schema registry, which Karapace and Apicurio have, too."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast, get_args
from urllib.parse import quote

from ingestd.cdc.schema_lookup import SchemaId, SchemaKind
from ingestd.errors import SourceError
from ingestd.http_request import shown
from ingestd.kafka.registry_http import RegistryHttp
from ingestd.kafka.registry_reading import Reference, RegistryDocument

_KINDS = frozenset(get_args(SchemaKind))
_MOST_VERSIONS = 50


class ConfluentProtocol:
    """A `RegistryProtocol`. The id of a schema is a number or a GUID."""

    def __init__(self, http: RegistryHttp) -> None:
        self._http = http

    def by_id(self, schema_id: SchemaId) -> RegistryDocument | None:
        """Return the schema of an id; None if it does not exist."""
        path = f"/schemas/ids/{schema_id}"
        if isinstance(schema_id, str):
            groups = (schema_id[:8], schema_id[8:12], schema_id[12:16], schema_id[16:20])
            path = f"/schemas/guids/{'-'.join((*groups, schema_id[20:]))}"
        return self.version(path)

    def version(self, path: str) -> RegistryDocument | None:
        """Return the version at a path; None if it does not exist."""
        document = self._http.get(path)
        return None if document is None else _document(document)

    def earlier(self, schema_id: SchemaId) -> Iterator[str]:
        """Return the paths of the versions before a schema, at most 50 for each subject.

        Returns none for a schema identified by a GUID, or if the registry does not report the
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
            f"schema registry: a response has no schema of a known type ({shown(kind)})"
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
