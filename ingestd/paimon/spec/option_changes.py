"""Restrict changes of table options, and find options that name columns.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema
"""

from collections.abc import Callable

from ingestd.errors import SchemaConflictError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.option_types import ChangeRule, Options, TableOption, parse_names
from ingestd.paimon.spec.schema_rules import bucket_number
from ingestd.paimon.spec.table_options import find_option

_FIELDS = "fields."
_NAMING = (honoured.BUCKET_KEY, honoured.SEQUENCE_FIELD, honoured.RECORD_TIME_FIELD)
"""Options whose value is a column or a list of columns."""
_LISTED_SUFFIXES = ("sequence-group", "nested-key")
"""Suffixes of those options under `fields.` whose value is a list of columns as well."""


def check_option_change(options: Options, key: str, value: str | None) -> None:
    """Raise SchemaConflictError if an option of a table with snapshots must not change to `value`.

    A value of None removes the option, so that its default applies.
    """
    if options.get(key) == value:
        return
    option = find_option(key)
    if option is not None and option.change is ChangeRule.NEVER:
        raise SchemaConflictError(
            f"option '{key}' cannot be changed: files of the table were written with it"
        )
    if key == "clustering.columns" and "pk-clustering-override" in options:
        raise SchemaConflictError(f"option '{key}' cannot be changed: files are in that order")
    if option is honoured.BUCKET:
        _check_bucket(options, value)
    if option is honoured.DELETION_VECTORS:
        _check_deletion_vectors(options, value)
    if option is not None and option.change is ChangeRule.TO_TRUE and value is not None:
        _check_to_true(option, options, key, value)


def _check_to_true(option: TableOption[object], options: Options, key: str, value: str) -> None:
    if option.of(options) and not option.of({key: value}):
        raise SchemaConflictError(f"option '{key}' cannot be changed from true to false")


def _check_deletion_vectors(options: Options, value: str | None) -> None:
    key = honoured.DELETION_VECTORS.name
    wanted = value is not None and honoured.DELETION_VECTORS.of({key: value})
    changes = honoured.DELETION_VECTORS.of(options) != wanted
    if changes and not honoured.DELETION_VECTORS_MODIFIABLE.of(options):
        raise SchemaConflictError(
            f"option '{key}' cannot be changed: rows would come back that are deleted; "
            "compact the table wholly and set 'deletion-vectors.modifiable' = 'true' first"
        )


def _check_bucket(options: Options, value: str | None) -> None:
    old = bucket_number(options)
    new = -1 if value is None else bucket_number({"bucket": value})
    if value is None or (-1 in (old, new) and old != new):
        raise SchemaConflictError(
            f"option 'bucket' cannot be changed from {old} to {new}: files of the table are in "
            "buckets of the old kind"
        )


def rename_in_options(options: Options, old: str, new: str) -> dict[str, str]:
    """Return the options with a column renamed in every option that names it."""

    def renamed(names: str) -> str:
        parts = (name.strip() for name in names.split(","))
        return ",".join(new if name == old else name for name in parts)

    return dict(_renamed(key, value, renamed) for key, value in options.items())


def _renamed(key: str, value: str, renamed: Callable[[str], str]) -> tuple[str, str]:
    if find_option(key) in _NAMING:
        return key, renamed(value)
    if not key.startswith(_FIELDS):
        return key, value
    names, dot, suffix = key[len(_FIELDS) :].rpartition(".")
    # Both a suffix and a column name may contain dots.
    for ending in _LISTED_SUFFIXES:
        if suffix == ending:
            return f"{_FIELDS}{renamed(names)}.{suffix}", renamed(value)
    if not dot:
        return key, value
    return f"{_FIELDS}{renamed(names)}.{suffix}", value


def refuse_named_column(options: Options, name: str) -> None:
    """Raise SchemaConflictError if an option names a column, which therefore cannot be dropped."""
    for option in _NAMING:
        if name in parse_names(option.name, options.get(option.name, "")):
            raise SchemaConflictError(f"column '{name}' of '{option.name}' cannot be dropped")
    for key in options:
        if key.startswith(_FIELDS) and name in parse_names(key, key.split(".")[1]):
            raise SchemaConflictError(
                f"column '{name}' cannot be dropped: option '{key}' is about it; remove that first"
            )
