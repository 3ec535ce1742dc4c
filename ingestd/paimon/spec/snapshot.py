"""Parse and encode snapshot files: the versions of a table published by commits.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from ingestd.errors import FormatError
from ingestd.paimon.spec.document_checks import check_seal, file_name, refuse_misspelt

SNAPSHOT_VERSION = 3
BATCH_COMMIT_IDENTIFIER = 9223372036854775807
"""Commit identifier of every batch job; only streaming jobs number their commits."""

CARRIED_PREFIX = "ingestd."
"""Prefix of properties that every commit of this package copies from its base snapshot.

Other implementations drop the properties of a snapshot when they commit on top of it.
"""
BASE_PROPERTY = f"{CARRIED_PREFIX}base"
"""Property with the delta manifest list of the snapshot on which a progress record was committed.

It is set only in the snapshot that introduces the record, and is not copied to later snapshots.
"""
OVERWRITTEN_PROPERTY = f"{CARRIED_PREFIX}overwritten"
"""Property with the ids of the snapshots, later than a progress record, in which other programs
replaced rows, separated by commas.
"""
CARRIED_OPTION = f"{CARRIED_PREFIX}pipelines"
"""Table option with the pipelines whose progress records the snapshots of the table carry."""

_Json = Any


class CommitKind(StrEnum):
    """The kind of a commit; the value is the text in the snapshot file."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A published version of a table, with the fields of its file; None if absent from the file.

    Sizes are in bytes, `time_millis` and `watermark` in milliseconds since 1970. The names of
    manifest lists, index manifest and statistics are file names without a directory. Record counts
    are before merging: all rows, rows added minus rows removed, and rows of the changelog.
    `next_row_id` is the first row id that no row has yet.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
    """

    id: int
    schema_id: int
    base_manifest_list: str
    base_manifest_list_size: int | None = None
    delta_manifest_list: str
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int | None = None
    delta_record_count: int | None = None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    next_row_id: int | None = None
    version: int = SNAPSHOT_VERSION


def _json_name(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


_JSON_NAMES = {
    "version": "version",
    **{spec.name: _json_name(spec.name) for spec in fields(Snapshot)},
}
"""Field name -> key in the file, in the order of the file."""
_TEXTS = frozenset(
    {"base_manifest_list", "delta_manifest_list", "changelog_manifest_list", "index_manifest",
     "commit_user", "statistics"}
)  # fmt: skip
_FILES = _TEXTS - {"commit_user"}
_REQUIRED = frozenset(
    {"id", "schema_id", "base_manifest_list", "delta_manifest_list", "commit_user",
     "commit_identifier", "commit_kind", "time_millis"}
)  # fmt: skip


def carried_properties(snapshot: Snapshot) -> dict[str, str]:
    """Return the properties of a snapshot that the next commit copies to its own snapshot.

    Their names begin with `CARRIED_PREFIX`; `BASE_PROPERTY` is not copied. An example is the
    progress record, which has the Kafka offsets that the table contains.
    """
    return {
        name: value
        for name, value in snapshot.properties.items()
        if name.startswith(CARRIED_PREFIX) and name != BASE_PROPERTY
    }


def parse_snapshot(data: bytes, source: str) -> Snapshot:
    """Parse a snapshot file.

    Raises FormatError, naming `source`, if it is invalid. Unknown keys are ignored, unless they are
    misspelt known ones.
    """
    try:
        check_seal(data)
        document = json.loads(data)
        refuse_misspelt(document.keys(), _JSON_NAMES.values())
        version = document.get("version", SNAPSHOT_VERSION)
        # As in Java, later versions only add keys, which older readers can ignore.
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ValueError(f"version {version!r} is not a number from 1 on")
        values = {
            name: _value(name, document[json_name])
            for name, json_name in _JSON_NAMES.items()
            if document.get(json_name) is not None
        }
        missing = sorted(_JSON_NAMES[name] for name in _REQUIRED - values.keys())
        if missing:
            raise ValueError(f"{', '.join(missing)} missing")
        return Snapshot(**values)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FormatError(f"snapshot file {source} cannot be read: {error}") from error


def _value(name: str, value: _Json) -> _Json:
    if name == "commit_kind":
        return CommitKind(value)
    if name == "properties":
        return {str(key): str(text) for key, text in value.items()}
    expected = str if name in _TEXTS else int
    if not isinstance(value, expected) or isinstance(value, bool):
        raise ValueError(f"{_JSON_NAMES[name]} is not of type {expected.__name__}: {value!r}")
    return file_name(str(value)) if name in _FILES else value


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Return the bytes of a snapshot file; fields that are None or empty are omitted."""
    document: dict[str, Any] = {}
    for name, json_name in _JSON_NAMES.items():
        value = getattr(snapshot, name)
        if value is None or (name == "properties" and not value):
            continue
        document[json_name] = dict(value) if name == "properties" else value
    return json.dumps(document, indent=2, ensure_ascii=False).encode()
