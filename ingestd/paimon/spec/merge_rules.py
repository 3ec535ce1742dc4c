"""What the table options say of how rows of one key become one row.

What they may not say together lives in `merge_checks`.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ingestd.errors import ConfigError
from ingestd.paimon.spec.option_values import bool_option, optional_int_option
from ingestd.paimon.spec.table_schema import TableSchema

FIELDS_PREFIX = "fields."
AGGREGATE_FUNCTION = "aggregate-function"
SEQUENCE_GROUP = "sequence-group"
DEFAULT_FUNCTION_OPTION = "fields.default-aggregate-function"
REMOVE_ON_DELETE: Mapping[str, str] = {
    "partial-update": "partial-update.remove-record-on-delete",
    "aggregation": "aggregation.remove-record-on-delete",
}
REMOVE_ON_GROUP = "partial-update.remove-record-on-sequence-group"
IGNORE_DELETE_OPTIONS = (
    "ignore-delete",
    "first-row.ignore-delete",
    "deduplicate.ignore-delete",
    "partial-update.ignore-delete",
)
LAST_VALUE = "last_value"
LAST_NON_NULL_VALUE = "last_non_null_value"
PRIMARY_KEY = "primary-key"
_NULL_COUNTS = frozenset({LAST_VALUE, "first_value", PRIMARY_KEY})


@dataclass(frozen=True, slots=True)
class FieldFunction:
    """An aggregate function of a column and its options.

    `delimiter` is for listagg, `distinct` for listagg and collect, `nested_key` and `count_limit`
    for nested_update, `time_field` for merge_map_with_keytime.
    """

    name: str
    ignore_retract: bool = False
    delimiter: str = ","
    distinct: bool = False
    nested_key: tuple[str, ...] = ()
    count_limit: int | None = None
    time_field: str | None = None


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """Columns of a partial update that follow the `sequence` columns instead of the order in
    which rows were written; a deletion in a group that `removes` takes the whole row."""

    sequence: tuple[str, ...]
    columns: tuple[str, ...]
    removes: bool = False


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How the rows of a key are ordered, and what becomes of them.

    `functions` is by column: for the engine aggregation all columns that are not of the primary
    key, for partial-update those of sequence groups that have one. `newest_level_only`: of the
    rows above level 0 the one of the lowest level already holds what the others do.
    `merges_single`: a key with one row is merged, too, which without it stays as it is.
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
        """Columns that must be read to merge rows of `columns`, without these."""
        needed = [*self.sequence_fields]
        for group in self.groups:
            if group.removes or set(columns) & {*group.columns, *group.sequence}:
                needed += group.sequence
        return tuple(name for name in dict.fromkeys(needed) if name not in columns)

    def keeps_older(self, column: str) -> bool:
        """Whether a null in a row leaves the column's older value as it is."""
        function = self.functions.get(column)
        if function is not None:
            return function.name not in _NULL_COUNTS
        grouped = any(column in (*group.columns, *group.sequence) for group in self.groups)
        return self.engine == "partial-update" and not grouped


def merge_rules(schema: TableSchema) -> MergeRules:
    """The rules of a table; ConfigError names an option whose value cannot be understood."""
    options = schema.options
    engine = merge_engine(options)
    sequence = listed(options.get("sequence.field", ""))
    groups = sequence_groups(options) if engine == "partial-update" else ()
    producer = options.get("changelog-producer", "none").strip().lower()
    return MergeRules(
        engine=engine,
        sequence_fields=sequence,
        descending=_is_descending(options),
        rowkind_field=options.get("rowkind.field"),
        ignore_delete=ignores_deletes(options),
        ignore_update_before=bool_option(options, "ignore-update-before", False),
        remove_on_delete=removes_on_delete(options),
        groups=groups,
        functions=dict(_functions(schema, engine, sequence, groups)),
        newest_level_only=engine in ("partial-update", "aggregation")
        and (
            producer == "lookup"
            or bool_option(options, "deletion-vectors.enabled", False)
            or bool_option(options, "force-lookup", False)
        ),
    )


def merge_engine(options: Mapping[str, str]) -> str:
    """The option `merge-engine`."""
    return options.get("merge-engine", "deduplicate").strip().lower()


def listed(text: str) -> tuple[str, ...]:
    """The names in a text with commas."""
    return tuple(name for name in map(str.strip, text.split(",")) if name)


def ignores_deletes(options: Mapping[str, str]) -> bool:
    """Whether retractions are left out: `ignore-delete` or one of its older names."""
    given = [name for name in IGNORE_DELETE_OPTIONS if name in options]
    return bool(given) and bool_option(options, given[0], False)


def removes_on_delete(options: Mapping[str, str]) -> bool:
    """Whether a deletion takes the whole row, in the engines that have an option for it."""
    name = REMOVE_ON_DELETE.get(merge_engine(options))
    return name is not None and bool_option(options, name, False)


def sequence_groups(options: Mapping[str, str]) -> tuple[SequenceGroup, ...]:
    """The groups of `fields.<names>.sequence-group`."""
    removing = set(listed(options.get(REMOVE_ON_GROUP, "")))
    found = []
    for name, value in options.items():
        if name.startswith(FIELDS_PREFIX) and name.endswith(f".{SEQUENCE_GROUP}"):
            inner = name.removeprefix(FIELDS_PREFIX).removesuffix(f".{SEQUENCE_GROUP}")
            sequence = listed(inner)
            found.append(SequenceGroup(sequence, listed(value), bool(removing & set(sequence))))
    return tuple(found)


def columns_named(options: Mapping[str, str]) -> tuple[str, ...]:
    """All columns that a table must have for its options on merging and on single columns."""
    names = [*listed(options.get("sequence.field", "")), *listed(options.get("rowkind.field", ""))]
    for option in options:
        if option.startswith(FIELDS_PREFIX) and option != DEFAULT_FUNCTION_OPTION:
            names += listed(option.removeprefix(FIELDS_PREFIX).rpartition(".")[0])
    for group in sequence_groups(options):
        names += group.columns
    return tuple(dict.fromkeys(names))


def function_name(options: Mapping[str, str], column: str) -> str | None:
    """The aggregate function that the options name for a column, or for all columns."""
    own = options.get(f"{FIELDS_PREFIX}{column}.{AGGREGATE_FUNCTION}")
    return own if own is not None else options.get(DEFAULT_FUNCTION_OPTION)


def _is_descending(options: Mapping[str, str]) -> bool:
    text = options.get("sequence.field.sort-order", "ascending")
    if text.strip().lower() not in ("ascending", "descending"):
        raise ConfigError(
            f"option 'sequence.field.sort-order' = '{text}': use 'ascending' or 'descending'"
        )
    return text.strip().lower() == "descending"


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


def _function(options: Mapping[str, str], column: str, name: str) -> FieldFunction:
    own = f"{FIELDS_PREFIX}{column}."
    return FieldFunction(
        name=name,
        ignore_retract=bool_option(options, f"{own}ignore-retract", False),
        delimiter=options.get(f"{own}list-agg-delimiter", ","),
        distinct=bool_option(options, f"{own}distinct", False),
        nested_key=listed(options.get(f"{own}nested-key", "")),
        count_limit=optional_int_option(options, f"{own}count-limit"),
        time_field=options.get(f"{own}ts-field"),
    )
