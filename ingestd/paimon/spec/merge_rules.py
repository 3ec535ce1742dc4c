"""Derive the merge rules of a table from its options.

Conflicts between the options are checked in `merge_checks`.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ingestd.errors import ConfigError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.option_types import Options, TableOption, parse_names
from ingestd.paimon.spec.table_options import find_option
from ingestd.paimon.spec.table_schema import TableSchema

FIELDS_PREFIX = "fields."
REMOVE_ON_DELETE: Mapping[str, TableOption[bool]] = {
    "partial-update": honoured.PARTIAL_UPDATE_REMOVE,
    "aggregation": honoured.AGGREGATION_REMOVE,
}
LAST_VALUE = "last_value"
LAST_NON_NULL_VALUE = "last_non_null_value"
PRIMARY_KEY = "primary-key"
_NULL_COUNTS = frozenset({LAST_VALUE, "first_value", PRIMARY_KEY})


@dataclass(frozen=True, slots=True)
class FieldFunction:
    """An aggregate function of a column, with its options.

    `delimiter` is for listagg, `distinct` for listagg and collect, `nested_key` for nested_update
    and nested_partial_update, `count_limit` for nested_update, `time_field` for
    merge_map_with_keytime. With `ignore_retract`, the function ignores retractions. `refusal` is
    the message of the error with which it fails on its column (None: it fits the column).
    """

    name: str
    ignore_retract: bool = False
    delimiter: str = ","
    distinct: bool = False
    nested_key: tuple[str, ...] = ()
    count_limit: int | None = None
    time_field: str | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """Columns of a partial-update table that are updated in the order of the `sequence` columns.

    Columns without a group are updated in the order of arrival. With `removes`, a deletion in the
    group deletes the whole row.
    """

    sequence: tuple[str, ...]
    columns: tuple[str, ...]
    removes: bool = False


@dataclass(frozen=True, slots=True)
class MergeRules:
    """The rules by which the rows of a key are ordered and merged.

    Rows are ordered by `sequence_fields`; if `descending`, the smallest value is the newest. The
    column `rowkind_field` has the kinds of the rows (None: no such column). With `ignore_delete`,
    rows of kind -D and -U are ignored; with `ignore_update_before`, a writer does not write rows of
    kind -U. With `remove_on_delete`, a deletion deletes the whole row of a partial-update or
    aggregation table.

    `functions` has aggregate functions by column name: with the engine aggregation, for all columns
    outside the primary key and for all sequence fields; with partial-update, for columns of
    sequence groups with a configured function. `newest_level_only`: of the rows above level 0, only
    the row of the lowest level is merged, because it already includes the others. `merges_single`:
    a key with a single row is merged, too; by default such a row is returned unchanged.
    """

    engine: str = "deduplicate"
    sequence_fields: tuple[str, ...] = ()
    descending: bool = False
    rowkind_field: str | None = None
    ignore_delete: bool = False
    ignore_update_before: bool = False
    remove_on_delete: bool = False
    groups: tuple[SequenceGroup, ...] = ()
    functions: Mapping[str, FieldFunction] = field(default_factory=dict)
    newest_level_only: bool = False
    merges_single: bool = False

    def columns_beside(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the further columns that a merge needs if only `columns` are read.

        These are the sequence fields, and the sequence columns of the groups that contain one of
        `columns` or whose deletions delete the whole row.
        """
        needed = [*self.sequence_fields]
        for group in self.groups:
            if group.removes or set(columns) & {*group.columns, *group.sequence}:
                needed += group.sequence
        return tuple(name for name in dict.fromkeys(needed) if name not in columns)

    def keeps_older(self, column: str) -> bool:
        """Return whether the older value of a column remains if a newer row has a null.

        Returns False for engines that keep one row of a key, and for columns of the primary key.
        """
        function = self.functions.get(column)
        if function is not None:
            return function.name not in _NULL_COUNTS
        grouped = any(column in (*group.columns, *group.sequence) for group in self.groups)
        return self.engine == "partial-update" and not grouped


def merge_rules(schema: TableSchema) -> MergeRules:
    """Return the merge rules of a table. Raises ConfigError for an invalid option value."""
    options = schema.options
    engine = honoured.MERGE_ENGINE.of(options)
    sequence = honoured.SEQUENCE_FIELD.of(options)
    groups = sequence_groups(options) if engine == "partial-update" else ()
    return MergeRules(
        engine=engine,
        sequence_fields=sequence,
        descending=_is_descending(options),
        rowkind_field=honoured.ROWKIND_FIELD.of(options),
        ignore_delete=honoured.IGNORE_DELETE.of(options),
        ignore_update_before=honoured.IGNORE_UPDATE_BEFORE.of(options),
        remove_on_delete=removes_on_delete(options),
        groups=groups,
        functions=dict(_functions(schema, engine, sequence, groups)),
        newest_level_only=engine in ("partial-update", "aggregation")
        and (
            honoured.CHANGELOG_PRODUCER.of(options) == "lookup"
            or honoured.DELETION_VECTORS.of(options)
            or honoured.FORCE_LOOKUP.of(options)
        ),
    )


def removes_on_delete(options: Options) -> bool:
    """Return whether a deletion deletes the whole row, by the option of the merge engine.

    Engines without such an option return False.
    """
    option = REMOVE_ON_DELETE.get(honoured.MERGE_ENGINE.of(options))
    return option is not None and option.of(options)


def uses_deleted_values(options: Options) -> bool:
    """Return whether more than the key of a deleted row decides how a deletion is merged.

    Aggregate functions take back the values of the row, and sequence groups compare its sequence.
    """
    if honoured.IGNORE_DELETE.of(options) or removes_on_delete(options):
        return False
    engine = honoured.MERGE_ENGINE.of(options)
    return engine == "aggregation" or (
        engine == "partial-update" and bool(sequence_groups(options))
    )


def sequence_groups(options: Options) -> tuple[SequenceGroup, ...]:
    """Return the sequence groups declared by the options `fields.<columns>.sequence-group`."""
    removing = set(honoured.REMOVE_ON_GROUP.of(options))
    groups = []
    for name, value in options.items():
        if find_option(name) is honoured.SEQUENCE_GROUP:
            sequence, columns = columns_in_option_name(name), parse_names(name, value)
            groups.append(SequenceGroup(sequence, columns, bool(removing & set(sequence))))
    return tuple(groups)


def columns_in_option_name(name: str) -> tuple[str, ...]:
    """Return the columns in the name of an option `fields.<columns>...`; () for other options."""
    if not name.startswith(FIELDS_PREFIX) or name == honoured.DEFAULT_FUNCTION.name:
        return ()
    return parse_names(name, name.removeprefix(FIELDS_PREFIX).rpartition(".")[0])


def columns_named(options: Options) -> tuple[str, ...]:
    """Return the columns that the merge options name, in their values or in their own names.

    The merge options are `sequence.field`, `rowkind.field` and `fields.<columns>...`. Each column
    is returned once.
    """
    names = [
        *honoured.SEQUENCE_FIELD.of(options),
        *filter(None, [honoured.ROWKIND_FIELD.of(options)]),
    ]
    for name in options:
        names += columns_in_option_name(name)
    for group in sequence_groups(options):
        names += group.columns
    return tuple(dict.fromkeys(names))


def function_name(options: Options, column: str) -> str | None:
    """Return the aggregate function configured for a column, or else for all columns.

    Returns None if neither is configured.
    """
    own = honoured.AGGREGATE_FUNCTION.of(options, column)
    return honoured.DEFAULT_FUNCTION.of(options) if own is None else own


def _is_descending(options: Options) -> bool:
    order = honoured.SEQUENCE_ORDER.of(options)
    if order not in ("ascending", "descending"):
        raise ConfigError(
            f"option '{honoured.SEQUENCE_ORDER.name}' = '{order}': use 'ascending' or 'descending'"
        )
    return order == "descending"


def _functions(
    schema: TableSchema,
    engine: str,
    sequence: Sequence[str],
    groups: Sequence[SequenceGroup],
) -> Iterator[tuple[str, FieldFunction]]:
    grouped = {name for group in groups for name in group.columns}
    for name in schema.field_names:
        if name in schema.primary_keys and name not in sequence:
            continue
        configured = function_name(schema.options, name)
        if engine == "aggregation":
            plain = LAST_VALUE if name in sequence else configured or LAST_NON_NULL_VALUE
            yield name, _function(schema.options, name, plain)
        elif engine == "partial-update" and configured and name in grouped:
            yield name, _function(schema.options, name, configured)


def _function(options: Options, column: str, name: str) -> FieldFunction:
    return FieldFunction(
        name=name,
        ignore_retract=honoured.IGNORE_RETRACT.of(options, column),
        delimiter=honoured.LIST_DELIMITER.of(options, column),
        distinct=honoured.DISTINCT.of(options, column),
        nested_key=honoured.NESTED_KEY.of(options, column),
        count_limit=honoured.COUNT_LIMIT.of(options, column),
        time_field=honoured.TIME_FIELD.of(options, column),
    )
