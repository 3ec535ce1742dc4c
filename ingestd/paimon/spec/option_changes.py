"""What changes of a schema do to its options: which may change, and which name columns.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/
"""

from collections.abc import Callable, Mapping

from ingestd.errors import SchemaConflictError
from ingestd.paimon.spec.schema_rules import bucket_number

IMMUTABLE_OPTIONS = frozenset(
    {"bucket-key", "bucket-function.type", "merge-engine", "primary-key", "partition",
     "rowkind.field", "data-file.path-directory", "aggregation.remove-record-on-delete",
     "partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group",
     "force-lookup", "row-tracking.enabled", "data-evolution.enabled",
     "index-file-in-data-file-dir", "pk-clustering-override", "blob-descriptor-field",
     "blob-external-storage-field", "blob-external-storage-path"}
)  # fmt: skip
"""Files that exist were written with these."""

_FIELDS = "fields."
_LISTS = ("bucket-key", "sequence.field")
"""Options whose value is a list of columns."""
_LISTED_SUFFIXES = ("sequence-group", "nested-key")
"""Ends of options under `fields.` whose value is a list of columns as well."""
_ONLY_ON = ("ignore-delete", "ignore-update-before")

Options = Mapping[str, str]


def check_option_change(options: Options, key: str, value: str | None) -> None:
    """SchemaConflictError if a table with snapshots cannot take a new value (None: the default)."""
    if options.get(key) == value:
        return
    if key in IMMUTABLE_OPTIONS:
        raise SchemaConflictError(
            f"option '{key}' cannot be changed: files of the table were written with it"
        )
    if key == "clustering.columns" and "pk-clustering-override" in options:
        raise SchemaConflictError(f"option '{key}' cannot be changed: files are in that order")
    if key == "bucket":
        _check_bucket(options, value)
    if key == "deletion-vectors.enabled":
        _check_deletion_vectors(options, value)
    if key in _ONLY_ON and value is not None:
        _check_only_on(options, key, value)


def _check_only_on(options: Options, key: str, value: str) -> None:
    if _flag(options, key) and not _flag({key: value}, key):
        raise SchemaConflictError(f"option '{key}' cannot be changed from true to false")


def _check_deletion_vectors(options: Options, value: str | None) -> None:
    key = "deletion-vectors.enabled"
    changes = _flag(options, key) != _flag({key: value or "false"}, key)
    if changes and not _flag(options, "deletion-vectors.modifiable"):
        raise SchemaConflictError(
            f"option '{key}' cannot be changed: rows would come back that are deleted; "
            "compact the table wholly and set 'deletion-vectors.modifiable' = 'true' first"
        )


def _check_bucket(options: Options, value: str | None) -> None:
    old = bucket_number(options)
    new = -1 if value is None else bucket_number({"bucket": value})
    if value is None or (-1 in (old, new) and old != new):
        raise SchemaConflictError(
            f"option 'bucket' cannot be changed from {old} to {new}: files of the table lie in "
            "buckets of the old kind"
        )


def _flag(options: Options, name: str) -> bool:
    return options.get(name, "false").strip().lower() == "true"


def rename_in_options(options: Options, old: str, new: str) -> dict[str, str]:
    """The options with a column's new name wherever they name it."""

    def renamed(names: str) -> str:
        parts = (name.strip() for name in names.split(","))
        return ",".join(new if name == old else name for name in parts)

    return dict(_renamed(key, value, renamed) for key, value in options.items())


def _renamed(key: str, value: str, renamed: Callable[[str], str]) -> tuple[str, str]:
    if key in _LISTS:
        return key, renamed(value)
    if not key.startswith(_FIELDS):
        return key, value
    names, dot, suffix = key[len(_FIELDS) :].rpartition(".")
    # A suffix may have a dot of its own, and so may a column.
    for ending in _LISTED_SUFFIXES:
        if suffix == ending:
            return f"{_FIELDS}{renamed(names)}.{suffix}", renamed(value)
    if not dot:
        return key, value
    return f"{_FIELDS}{renamed(names)}.{suffix}", value


def refuse_named_column(options: Options, name: str) -> None:
    """SchemaConflictError, naming the option, if one names a column that is to be dropped."""
    for key in _LISTS:
        if name in _names(options.get(key, "")):
            raise SchemaConflictError(f"column '{name}' of '{key}' cannot be dropped")
    for key in options:
        if key.startswith(_FIELDS) and name in _names(key.split(".")[1]):
            raise SchemaConflictError(
                f"column '{name}' cannot be dropped: option '{key}' is about it; remove that first"
            )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
