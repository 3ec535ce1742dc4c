"""Apply schema changes to columns, nested columns, and options.

Data files identify columns by id, so that no change rewrites them. Changes identify a column by its
name, and a nested column by its path. Options that name a column are renamed with it, and some
options cannot change after the first snapshot.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema
"""

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ingestd.errors import SchemaConflictError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.changelog_checks import check_changelog_options
from ingestd.paimon.spec.data_types import DataField, DataType, max_field_id
from ingestd.paimon.spec.iceberg_rules import refuse_iceberg_change
from ingestd.paimon.spec.merge_checks import check_merge_options
from ingestd.paimon.spec.option_types import ChangeRule, Options, TableOption, parse_names
from ingestd.paimon.spec.options import refuse_new_options
from ingestd.paimon.spec.record_level_expire import check_record_level_expire
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    Move,
    MoveType,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
    dotted_name,
    path_of,
)
from ingestd.paimon.spec.schema_rules import bucket_number, check_schema
from ingestd.paimon.spec.table_options import find_option, refuse_unknown_options
from ingestd.paimon.spec.table_schema import TableSchema, reassign_ids
from ingestd.paimon.spec.type_casts import can_cast

_Path = tuple[str, ...]
Fields = tuple[DataField, ...]
_STEPS = {"ARRAY": "element", "MAP": "value"}
"""Root of a collection -> the name of its elements in a path."""


def apply_changes(
    schema: TableSchema,
    changes: Sequence[SchemaChange],
    time_millis: int,
    *,
    has_snapshots: bool = True,
) -> TableSchema:
    """Return the next version of a schema, with id + 1, after changes are applied in order.

    `time_millis` is the time of the new version in milliseconds since 1970. Without
    `has_snapshots`, more changes are allowed, because they need not match existing files. Raises
    SchemaConflictError if a change is not allowed, ConfigError for an unknown or invalid option,
    and UnsupportedError for an option value that is not supported, or if Iceberg metadata of the
    table becomes impossible.
    """
    changed = schema
    for change in changes:
        if isinstance(change, SetOption | RemoveOption):
            value = change.value if isinstance(change, SetOption) else None
            if value is not None:
                refuse_unknown_options([change.key])
            if has_snapshots:
                check_option_change(schema.options, change.key, value)
        if isinstance(change, DropPrimaryKey) and has_snapshots:
            raise SchemaConflictError("the primary key cannot be dropped: there are files with it")
        changed = _APPLY[type(change)](changed, change)
    check_schema(changed.fields, changed.primary_keys, changed.partition_keys, changed.options)
    check_merge_options(changed)
    check_changelog_options(changed)
    refuse_new_options(_options_set(changes))
    refuse_iceberg_change(schema, changed, has_snapshots=has_snapshots)
    check_record_level_expire(changed)
    return replace(changed, id=schema.id + 1, time_millis=time_millis)


def _options_set(changes: Sequence[SchemaChange]) -> dict[str, str]:
    return {change.key: change.value for change in changes if isinstance(change, SetOption)}


def _refuse_keys(schema: TableSchema, path: _Path, verb: str, *kinds: str) -> None:
    """Raise SchemaConflictError if a column is a key of one of `kinds`.

    Nested columns cannot be keys.
    """
    keys = {"partition": schema.partition_keys, "primary": schema.primary_keys}
    for kind in kinds:
        if len(path) == 1 and path[0] in keys[kind]:
            raise SchemaConflictError(f"{kind} key column '{path[0]}' cannot be {verb}")


def _column_at(
    schema: TableSchema, path: _Path, change: Callable[[DataField], DataField]
) -> Fields:
    def siblings(fields: Fields) -> Fields:
        return replace_column(fields, change(find_column(fields, path[-1])))

    return change_siblings(schema.fields, path, siblings)


def _add_column(schema: TableSchema, change: AddColumn) -> TableSchema:
    path, name = path_of(change.name), dotted_name(change.name)
    if not change.type.nullable:
        raise SchemaConflictError(
            f"column '{name}' cannot be added as {change.type}: rows that exist have no "
            "value for it; add it as nullable"
        )
    ids = itertools.count(schema.highest_field_id + 1)
    column = DataField(
        next(ids), path[-1], reassign_ids(change.type, ids), description=change.comment
    )

    def siblings(fields: Fields) -> Fields:
        if any(field.name == path[-1] for field in fields):
            raise SchemaConflictError(f"column '{name}' cannot be added: it exists already")
        if change.move is None:
            position = _new_position(schema, fields) if len(path) == 1 else len(fields)
        else:
            position = _place(fields, change.move)
        return (*fields[:position], column, *fields[position:])

    fields = change_siblings(schema.fields, path, siblings)
    return replace(schema, fields=fields, highest_field_id=max_field_id((column,)))


def _new_position(schema: TableSchema, fields: Fields) -> int:
    if honoured.COLUMN_BEFORE_PARTITION.of(schema.options):
        for i, field in enumerate(fields):
            if field.name in schema.partition_keys:
                return i
    return len(fields)


def _place(fields: Fields, move: Move) -> int:
    """Return the index at which a column is inserted into `fields`, which do not contain it."""
    if move.type is MoveType.FIRST:
        return 0
    if move.type is MoveType.LAST:
        return len(fields)
    neighbour = fields.index(find_column(fields, move.reference or ""))
    return neighbour + (move.type is MoveType.AFTER)


def _move_column(schema: TableSchema, change: UpdateColumnPosition) -> TableSchema:
    column = find_column(schema.fields, change.name)
    others = tuple(field for field in schema.fields if field.id != column.id)
    if change.move.reference == change.name and change.move.type in (
        MoveType.AFTER,
        MoveType.BEFORE,
    ):
        raise SchemaConflictError(f"column '{change.name}' cannot be moved next to itself")
    position = _place(others, change.move)
    if change.move.reference is None and schema.fields.index(column) == position:
        raise SchemaConflictError(f"column '{change.name}' is {change.move} already")
    return replace(schema, fields=(*others[:position], column, *others[position:]))


def _update_type(schema: TableSchema, change: UpdateColumnType) -> TableSchema:
    path = path_of(change.name)
    _refuse_keys(schema, path, "given another type", "partition", "primary")
    explicit = not honoured.EXPLICIT_CASTS_DISABLED.of(schema.options)

    def cast(old: DataType) -> DataType:
        new = (
            replace(change.type, nullable=old.nullable) if change.keep_nullability else change.type
        )
        _check_nullability(schema, path, old, nullable=new.nullable)
        if not can_cast(old, new, explicit=explicit):
            raise SchemaConflictError(
                f"column '{dotted_name(path)}' of type {old} cannot become {new}: there is no such "
                "cast"
            )
        # Fields of a nested type keep their ids: here, only its nullability can differ.
        same = old.as_nullable() == new.as_nullable()
        return replace(old, nullable=new.nullable) if same else new

    return replace(schema, fields=change_type(schema.fields, path, cast))


def _check_nullability(schema: TableSchema, path: _Path, old: DataType, *, nullable: bool) -> None:
    forbidden = honoured.NOT_NULL_DISABLED.of(schema.options)
    if old.nullable and not nullable and forbidden:
        raise SchemaConflictError(
            f"column '{dotted_name(path)}' of type {old} cannot become NOT NULL: it may hold "
            "nulls; set 'alter-column-null-to-not-null.disabled' = 'false' if it does not"
        )


def _update_nullability(schema: TableSchema, change: UpdateColumnNullability) -> TableSchema:
    path = path_of(change.name)
    if change.nullable:
        _refuse_keys(schema, path, "given nulls", "primary")

    def allow(old: DataType) -> DataType:
        _check_nullability(schema, path, old, nullable=change.nullable)
        return replace(old, nullable=change.nullable)

    return replace(schema, fields=change_type(schema.fields, path, allow))


def _update_comment(schema: TableSchema, change: UpdateColumnComment) -> TableSchema:
    set_comment = partial(replace, description=change.comment)
    return replace(schema, fields=_column_at(schema, path_of(change.name), set_comment))


def _update_default(schema: TableSchema, change: UpdateColumnDefaultValue) -> TableSchema:
    set_default = partial(replace, default_value=change.default_value)
    return replace(schema, fields=_column_at(schema, path_of(change.name), set_default))


def _rename_column(schema: TableSchema, change: RenameColumn) -> TableSchema:
    path, new = path_of(change.name), change.new_name
    _refuse_keys(schema, path, "renamed", "partition")

    def siblings(fields: Fields) -> Fields:
        column = find_column(fields, path[-1])
        if any(field.name == new for field in fields):
            raise SchemaConflictError(
                f"column '{dotted_name(path)}' cannot be renamed to '{new}': that exists already"
            )
        return replace_column(fields, replace(column, name=new))

    changed = replace(schema, fields=change_siblings(schema.fields, path, siblings))
    options = rename_in_options(schema.options, path, new)
    if len(path) > 1:
        return replace(changed, options=options)
    keys = tuple(new if key == path[0] else key for key in schema.primary_keys)
    return replace(changed, primary_keys=keys, options=options)


def _drop_column(schema: TableSchema, change: DropColumn) -> TableSchema:
    path = path_of(change.name)
    _refuse_keys(schema, path, "dropped", "partition", "primary")
    options = schema.options
    nested_key = honoured.NESTED_KEY.name_for(path[0])
    if len(path) > 1 and path[-1] in parse_names(nested_key, options.get(nested_key, "")):
        raise SchemaConflictError(
            f"field '{dotted_name(path)}' of '{nested_key}' cannot be dropped"
        )
    if len(path) == 1:
        refuse_named_column(options, path[0])
        options = without_indexes(options, path[0])

    def siblings(fields: Fields) -> Fields:
        column = find_column(fields, path[-1])
        if len(fields) == 1:
            raise SchemaConflictError(
                f"column '{dotted_name(path)}' cannot be dropped: at least one column has to stay"
            )
        return tuple(field for field in fields if field.id != column.id)

    return replace(schema, fields=change_siblings(schema.fields, path, siblings), options=options)


def _set_option(schema: TableSchema, change: SetOption) -> TableSchema:
    return replace(schema, options={**schema.options, change.key: change.value})


def _remove_option(schema: TableSchema, change: RemoveOption) -> TableSchema:
    kept = {key: value for key, value in schema.options.items() if key != change.key}
    return replace(schema, options=kept)


def _update_table_comment(schema: TableSchema, change: UpdateComment) -> TableSchema:
    return replace(schema, comment=change.comment)


def _drop_primary_key(schema: TableSchema, change: DropPrimaryKey) -> TableSchema:
    return replace(schema, primary_keys=())


_APPLY: dict[type, Callable[..., TableSchema]] = {
    AddColumn: _add_column,
    UpdateColumnType: _update_type,
    UpdateColumnNullability: _update_nullability,
    UpdateColumnComment: _update_comment,
    UpdateColumnDefaultValue: _update_default,
    UpdateColumnPosition: _move_column,
    RenameColumn: _rename_column,
    DropColumn: _drop_column,
    SetOption: _set_option,
    RemoveOption: _remove_option,
    UpdateComment: _update_table_comment,
    DropPrimaryKey: _drop_primary_key,
}


def find_column(fields: Fields, name: str) -> DataField:
    """Return the field with this name. Raises SchemaConflictError if there is no such field."""
    for field in fields:
        if field.name == name:
            return field
    raise SchemaConflictError(
        f"unknown column '{name}'; the columns are {', '.join(field.name for field in fields)}"
    )


def replace_column(fields: Fields, column: DataField) -> Fields:
    """Return the fields with `column` in place of the field that has the same id."""
    return tuple(column if field.id == column.id else field for field in fields)


def change_siblings(
    fields: Fields, path: Sequence[str], change: Callable[[Fields], Fields]
) -> Fields:
    """Return `fields` with `change` applied to the ROW that contains the field at a path.

    `change` takes and returns the fields of this ROW. If the path has one name, they are `fields`
    itself. Raises SchemaConflictError if the path does not exist, except for its last name, which
    `change` may look up or add.
    """
    if len(path) == 1:
        return change(fields)
    field = find_column(fields, path[0])

    def inside(t: DataType, depth: int) -> DataType:
        if t.root == "ROW":
            return replace(t, fields=change_siblings(t.fields, path[depth:], change))
        return _step(t, path, depth, inside)

    return replace_column(fields, replace(field, type=inside(field.type, 1)))


def change_type(
    fields: Fields, path: Sequence[str], change: Callable[[DataType], DataType]
) -> Fields:
    """Return `fields` with `change` applied to the type of the column at a path.

    Raises SchemaConflictError if the path does not exist.
    """
    field = find_column(fields, path[0])

    def inside(t: DataType, depth: int) -> DataType:
        if depth == len(path):
            return change(t)
        if t.root == "ROW":
            return replace(t, fields=change_type(t.fields, path[depth:], change))
        return _step(t, path, depth, inside)

    return replace_column(fields, replace(field, type=inside(field.type, 1)))


def _step(
    t: DataType, path: Sequence[str], depth: int, inside: Callable[[DataType, int], DataType]
) -> DataType:
    """Return a collection type with `inside` applied to its element or value type.

    This is one step along the path. Raises SchemaConflictError if the path does not lead into the
    type.
    """
    name = _STEPS.get(t.root)
    if name is None or depth >= len(path) or path[depth] != name:
        steps = f"'{name}' is what leads into it" if name else "nothing is inside it"
        raise SchemaConflictError(
            f"column '{'.'.join(path)}' is not there: '{'.'.join(path[:depth])}' is {t}; {steps}"
        )
    if t.element is not None:
        return replace(t, element=inside(t.element, depth + 1))
    if t.value is None:
        raise ValueError(f"{t} has no values")
    return replace(t, value=inside(t.value, depth + 1))


_FIELDS = "fields."
_NAMING = (
    honoured.BUCKET_KEY,
    honoured.SEQUENCE_FIELD,
    honoured.ROWKIND_FIELD,
    honoured.RECORD_TIME_FIELD,
    honoured.REMOVE_ON_GROUP,
)
"""Options whose value is a column or a list of columns, which cannot be dropped."""
_ALSO_NAMING = (honoured.DEDUPLICATE_IGNORE, find_option("clustering.columns"))
"""Further options with a list of columns."""
_INDEXED = re.compile(r"file-index\.[^.]+\.columns")
"""Options whose value is a list of columns; a column that is dropped is removed from it."""
_OF_COLUMN = re.compile(r"(fields|file-index\.[^.]+)\.(.+)\.([^.]+)")
"""Options of a column, or of a list of columns: prefix, names, which may contain dots, setting."""


def check_option_change(options: Options, key: str, value: str | None) -> None:
    """Raise SchemaConflictError if the option `key` of a table must not change to `value`.

    The table has snapshots, and `options` are its current options. A value of None removes the
    option, so that its default applies.
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


def rename_in_options(options: Options, path: Sequence[str], new: str) -> dict[str, str]:
    """Return the options with a column renamed to `new` wherever they name it.

    `path` is the old name of the column, or the path of a field in a column.
    """
    if len(path) > 1:
        naming = {option.name_for(path[0]) for option in (honoured.NESTED_KEY, honoured.TIME_FIELD)}
        return {
            key: _replace_name(value, path[-1], new) if key in naming else value
            for key, value in options.items()
        }
    return dict(_renamed(key, value, path[0], new) for key, value in options.items())


def _renamed(key: str, value: str, old: str, new: str) -> tuple[str, str]:
    if find_option(key) in (*_NAMING, *_ALSO_NAMING) or _INDEXED.fullmatch(key):
        return key, _replace_name(value, old, new)
    setting = _OF_COLUMN.fullmatch(key)
    if setting is None:
        return key, value
    if setting[3] == "sequence-group":
        value = _replace_name(value, old, new)
    return f"{setting[1]}.{_replace_name(setting[2], old, new)}.{setting[3]}", value


def _replace_name(names: str, old: str, new: str) -> str:
    parts = (name.strip() for name in names.split(","))
    return ",".join(
        new + name.removeprefix(old) if _is_about(name, old) else name for name in parts
    )


def _is_about(name: str, column: str) -> bool:
    """Return whether a name in an option is a column, or a key of a MAP column: `column[key]`."""
    return name == column or (name.startswith(f"{column}[") and name.endswith("]"))


def without_indexes(options: Options, name: str) -> dict[str, str]:
    """Return the options without the file indexes of the column `name`, which is dropped."""
    kept = {}
    for key, value in options.items():
        setting = _OF_COLUMN.fullmatch(key)
        if setting and setting[1] != "fields" and _is_about(setting[2], name):
            continue
        if _INDEXED.fullmatch(key):
            names = parse_names(key, value)
            left = [column for column in names if not _is_about(column, name)]
            if not left:
                continue
            value = value if len(left) == len(names) else ",".join(left)
        kept[key] = value
    return kept


def refuse_named_column(options: Options, name: str) -> None:
    """Raise SchemaConflictError if an option refers to the column `name`, which is to be dropped.

    Options like `sequence.field` refer to columns in their value, options `fields.<columns>...` in
    their name. Options of file indexes do not count.
    """
    for option in _NAMING:
        if name in parse_names(option.name, options.get(option.name, "")):
            raise SchemaConflictError(f"column '{name}' of '{option.name}' cannot be dropped")
    for key in options:
        if key.startswith(_FIELDS) and name in parse_names(key, key.split(".")[1]):
            raise SchemaConflictError(
                f"column '{name}' cannot be dropped: option '{key}' is about it; remove that first"
            )
