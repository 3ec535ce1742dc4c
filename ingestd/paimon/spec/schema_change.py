"""Changes of a schema, and the schema that comes of them.

Columns are known by id, so nothing here touches data files. Specification: Schema.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ingestd.errors import SchemaConflictError
from ingestd.paimon.spec.data_types import DataField, DataType, max_field_id
from ingestd.paimon.spec.schema_rules import check_schema
from ingestd.paimon.spec.table_schema import TableSchema, reassign_ids
from ingestd.paimon.spec.type_casts import can_cast

IMMUTABLE_OPTIONS = frozenset(
    {"bucket", "bucket-key", "bucket-function.type", "merge-engine", "primary-key", "partition",
     "rowkind.field", "data-file.path-directory", "aggregation.remove-record-on-delete",
     "partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group",
     "force-lookup", "row-tracking.enabled", "data-evolution.enabled",
     "index-file-in-data-file-dir", "pk-clustering-override"}
)  # fmt: skip
"""Files that exist were written with these."""


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new nullable column at the end."""

    name: str
    type: DataType
    comment: str | None = None

    def __str__(self) -> str:
        return f"add {self.name} {self.type}"


@dataclass(frozen=True, slots=True)
class UpdateColumnType:
    """Another type, nullability included, for a column."""

    name: str
    type: DataType

    def __str__(self) -> str:
        return f"change {self.name} to {self.type}"


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Another name for a column, which keeps its id."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Take a column away; its id is never given again."""

    name: str


@dataclass(frozen=True, slots=True)
class SetOption:
    """Set a table option."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """Give a table option its default again."""

    key: str


SchemaChange = AddColumn | UpdateColumnType | RenameColumn | DropColumn | SetOption | RemoveOption


def apply_changes(
    schema: TableSchema, changes: Sequence[SchemaChange], time_millis: int
) -> TableSchema:
    """The next version of a schema: id + 1, changes in their order.

    SchemaConflictError says which change the table cannot take, and why.
    """
    changed = schema
    for change in changes:
        changed = _APPLY[type(change)](changed, change)
    check_schema(changed.fields, changed.primary_keys, changed.partition_keys, changed.options)
    return replace(changed, id=schema.id + 1, time_millis=time_millis)


def _flag(schema: TableSchema, name: str, default: str) -> bool:
    return schema.options.get(name, default).strip().lower() == "true"


def _add_column(schema: TableSchema, change: AddColumn) -> TableSchema:
    if not change.type.nullable:
        raise SchemaConflictError(
            f"column '{change.name}' cannot be added as {change.type}: rows that exist have no "
            "value for it; add it as nullable"
        )
    if change.name in schema.field_names:
        raise SchemaConflictError(f"column '{change.name}' cannot be added: it exists already")
    ids = itertools.count(schema.highest_field_id + 1)
    column = DataField(
        next(ids), change.name, reassign_ids(change.type, ids), description=change.comment
    )
    fields = list(schema.fields)
    fields.insert(_new_position(schema), column)
    return replace(schema, fields=tuple(fields), highest_field_id=max_field_id((column,)))


def _new_position(schema: TableSchema) -> int:
    if _flag(schema, "add-column-before-partition", "false"):
        for i, name in enumerate(schema.field_names):
            if name in schema.partition_keys:
                return i
    return len(schema.fields)


def _column(schema: TableSchema, name: str, verb: str) -> DataField:
    if name not in schema.field_names:
        raise SchemaConflictError(
            f"column '{name}' cannot be {verb}: there is none; there are "
            f"{', '.join(schema.field_names)}"
        )
    return schema.field(name)


def _replace_column(schema: TableSchema, column: DataField) -> TableSchema:
    fields = (column if old.id == column.id else old for old in schema.fields)
    return replace(schema, fields=tuple(fields))


def _refuse_keys(schema: TableSchema, name: str, verb: str) -> None:
    for kind, keys in (("partition", schema.partition_keys), ("primary", schema.primary_keys)):
        if name in keys:
            raise SchemaConflictError(f"{kind} key column '{name}' cannot be {verb}")


def _update_type(schema: TableSchema, change: UpdateColumnType) -> TableSchema:
    column = _column(schema, change.name, "given another type")
    _refuse_keys(schema, change.name, "given another type")
    if (
        column.type.nullable
        and not change.type.nullable
        and _flag(schema, "alter-column-null-to-not-null.disabled", "true")
    ):
        raise SchemaConflictError(
            f"column '{change.name}' cannot become {change.type}: it may hold nulls; set "
            "'alter-column-null-to-not-null.disabled' = 'false' if it does not"
        )
    explicit = not _flag(schema, "disable-explicit-type-casting", "false")
    if not can_cast(column.type, change.type, explicit=explicit):
        raise SchemaConflictError(
            f"column '{change.name}' of type {column.type} cannot become {change.type}: there "
            "is no such cast"
        )
    # Fields inside a nested type keep their ids: only its nullability can differ here.
    same = column.type.as_nullable() == change.type.as_nullable()
    new_type = replace(column.type, nullable=change.type.nullable) if same else change.type
    return _replace_column(schema, replace(column, type=new_type))


def _rename_column(schema: TableSchema, change: RenameColumn) -> TableSchema:
    column = _column(schema, change.name, "renamed")
    if change.name in schema.partition_keys:
        raise SchemaConflictError(f"partition key column '{change.name}' cannot be renamed")
    if change.new_name in schema.field_names:
        raise SchemaConflictError(
            f"column '{change.name}' cannot be renamed to '{change.new_name}': that exists already"
        )

    def renamed(name: str) -> str:
        return change.new_name if name == change.name else name

    options = {
        _renamed_option(key, change): _renamed_list(key, value, renamed)
        for key, value in schema.options.items()
    }
    primary_keys = tuple(map(renamed, schema.primary_keys))
    changed = replace(schema, options=options, primary_keys=primary_keys)
    return _replace_column(changed, replace(column, name=change.new_name))


def _renamed_option(key: str, change: RenameColumn) -> str:
    prefix = f"fields.{change.name}."
    return f"fields.{change.new_name}.{key[len(prefix) :]}" if key.startswith(prefix) else key


def _renamed_list(key: str, value: str, renamed: Callable[[str], str]) -> str:
    if key not in ("bucket-key", "sequence.field"):
        return value
    return ",".join(renamed(name.strip()) for name in value.split(","))


def _drop_column(schema: TableSchema, change: DropColumn) -> TableSchema:
    column = _column(schema, change.name, "dropped")
    _refuse_keys(schema, change.name, "dropped")
    for option in ("bucket-key", "sequence.field"):
        if change.name in (name.strip() for name in schema.options.get(option, "").split(",")):
            raise SchemaConflictError(f"column '{change.name}' of '{option}' cannot be dropped")
    return replace(schema, fields=tuple(old for old in schema.fields if old.id != column.id))


def _set_option(schema: TableSchema, change: SetOption) -> TableSchema:
    if schema.options.get(change.key) != change.value:
        _refuse_immutable(change.key)
    return replace(schema, options={**schema.options, change.key: change.value})


def _remove_option(schema: TableSchema, change: RemoveOption) -> TableSchema:
    if change.key in schema.options:
        _refuse_immutable(change.key)
    kept = {key: value for key, value in schema.options.items() if key != change.key}
    return replace(schema, options=kept)


def _refuse_immutable(key: str) -> None:
    if key in IMMUTABLE_OPTIONS:
        raise SchemaConflictError(
            f"option '{key}' cannot be changed: files of the table were written with it"
        )


_APPLY: dict[type, Callable[..., TableSchema]] = {
    AddColumn: _add_column,
    UpdateColumnType: _update_type,
    RenameColumn: _rename_column,
    DropColumn: _drop_column,
    SetOption: _set_option,
    RemoveOption: _remove_option,
}
