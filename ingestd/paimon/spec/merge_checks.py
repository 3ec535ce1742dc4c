"""Validate merge options against each other and against the columns of the table.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    NESTED_ROOTS,
    DataField,
    DataType,
)
from ingestd.paimon.spec.merge_rules import (
    FIELDS_PREFIX,
    LAST_NON_NULL_VALUE,
    FieldFunction,
    MergeRules,
    SequenceGroup,
    columns_in_option_name,
    function_name,
    merge_rules,
)
from ingestd.paimon.spec.table_schema import TableSchema

_SKETCH_FUNCTIONS = frozenset({"hll_sketch", "theta_sketch"})
"""Paimon's aggregate functions of serialized sketches, which are not implemented here."""

_NUMBER_ROOTS = INTEGER_ROOTS | {"FLOAT", "DOUBLE", "DECIMAL"}
_UNORDERED_ROOTS = NESTED_ROOTS | {"BOOLEAN", "VARIANT", "BLOB"}


def check_merge_options(schema: TableSchema) -> None:
    """Raise ConfigError, naming the options, for invalid or conflicting merge options."""
    _check_names(schema)
    rules = merge_rules(schema)
    _check_sequence_field(schema, rules)
    _check_rowkind_field(schema, rules)
    if not schema.primary_keys:
        return
    if rules.engine == "first-row":
        _check_first_row(schema)
    if rules.engine == "partial-update":
        _check_partial_update(schema, rules)
    if rules.engine == "aggregation":
        _check_aggregation(rules)
    for name, function in rules.functions.items():
        _check_function(schema.field(name), function)


def refuse_functions(schema: TableSchema) -> None:
    """Raise UnsupportedError for a column whose aggregate function is not implemented."""
    for name, function in merge_rules(schema).functions.items():
        if function.name not in _TYPE_CHECKS:
            raise UnsupportedError(
                f"option 'fields.{name}.aggregate-function' = '{function.name}' is not supported; "
                f"these are: {', '.join(sorted(_TYPE_CHECKS))}"
            )


def rules_with_refusals(schema: TableSchema, table: str) -> MergeRules:
    """Return the merge rules of a table, with the refusals of functions that do not fit columns.

    Java changes the type of a column without such a check, and fails once it merges the column.
    `table` is the name of the table in the messages. Raises ConfigError for an invalid option
    value.
    """
    rules = merge_rules(schema)
    functions = {}
    for name, function in rules.functions.items():
        misfit = _misfit(schema.field(name), function)
        if misfit is not None:
            option = honoured.AGGREGATE_FUNCTION.name_for(name)
            way_out = f"set '{option}' to a function of this type, such as '{LAST_NON_NULL_VALUE}'"
            function = replace(function, refusal=f"table {table}: {misfit}; {way_out}")
        functions[name] = function
    return replace(rules, functions=functions)


def _check_names(schema: TableSchema) -> None:
    for option in schema.options:
        for name in columns_in_option_name(option):
            _need(schema, name, option)


def _need(schema: TableSchema, name: str, option: str) -> None:
    if name not in schema.field_names:
        raise ConfigError(
            f"option '{option}' names column '{name}', which the table does not have; its columns "
            f"are {', '.join(schema.field_names)}"
        )


def _check_sequence_field(schema: TableSchema, rules: MergeRules) -> None:
    names = rules.sequence_fields
    for name in names:
        _need(schema, name, honoured.SEQUENCE_FIELD.name)
        own = honoured.AGGREGATE_FUNCTION.name_for(name)
        if own in schema.options:
            raise ConfigError(f"column '{name}' is in 'sequence.field', so it cannot have '{own}'")
        if schema.field(name).type.root in _UNORDERED_ROOTS - {"BOOLEAN"}:
            raise ConfigError(
                f"column '{name}' of 'sequence.field' has type {schema.field(name).type}, which "
                "has no order"
            )
    if len(set(names)) != len(names):
        raise ConfigError(f"option 'sequence.field' = '{','.join(names)}' names a column twice")
    if names and rules.engine == "first-row":
        raise ConfigError("'merge-engine' = 'first-row' cannot be used with 'sequence.field'")
    if names and schema.primary_keys and not set(schema.partition_keys) <= set(schema.primary_keys):
        raise ConfigError(
            "'sequence.field' cannot be used where the primary key "
            f"{list(schema.primary_keys)} does not hold all partition keys "
            f"{list(schema.partition_keys)}: rows would move between partitions"
        )


def _check_rowkind_field(schema: TableSchema, rules: MergeRules) -> None:
    name = rules.rowkind_field
    if name is None:
        return
    _need(schema, name, honoured.ROWKIND_FIELD.name)
    if schema.field(name).type.root not in CHARACTER_ROOTS:
        raise ConfigError(
            f"column '{name}' of 'rowkind.field' has type {schema.field(name).type}; it must be a "
            "text that holds +I, -U, +U or -D"
        )


def _check_first_row(schema: TableSchema) -> None:
    producer = honoured.CHANGELOG_PRODUCER.of(schema.options)
    if producer not in ("none", "lookup"):
        raise ConfigError(
            f"'merge-engine' = 'first-row' cannot be used with 'changelog-producer' = '{producer}';"
            " use 'none' or 'lookup'"
        )


def _check_partial_update(schema: TableSchema, rules: MergeRules) -> None:
    _check_groups(schema, rules.groups)
    remove, on_group = honoured.PARTIAL_UPDATE_REMOVE.name, honoured.REMOVE_ON_GROUP.name
    ignore, group = honoured.IGNORE_DELETE.name, honoured.SEQUENCE_GROUP.name
    by_group = honoured.REMOVE_ON_GROUP.of(schema.options)
    for first, second, clash in (
        (remove, ignore, rules.remove_on_delete and rules.ignore_delete),
        (on_group, ignore, bool(by_group) and rules.ignore_delete),
        (remove, group, rules.remove_on_delete and bool(rules.groups)),
    ):
        if clash:
            raise ConfigError(f"options '{first}' and '{second}' contradict each other; choose one")
    grouped = {name for group in rules.groups for name in group.sequence}
    for name in by_group:
        if name not in grouped:
            raise ConfigError(
                f"column '{name}' of '{on_group}' belongs to no sequence group; "
                f"these do: {sorted(grouped)}"
            )
    _check_grouped_functions(schema, rules.groups)


def _check_groups(schema: TableSchema, groups: Sequence[SequenceGroup]) -> None:
    owners: dict[str, SequenceGroup] = {}
    for group in groups:
        option = f"{FIELDS_PREFIX}{','.join(group.sequence)}.sequence-group"
        for name in (*group.sequence, *group.columns):
            _need(schema, name, option)
            if name in owners:
                raise ConfigError(f"option '{option}': column '{name}' is in two sequence groups")
            owners[name] = group
        for name in group.sequence:
            if schema.field(name).type.root in _UNORDERED_ROOTS - {"BOOLEAN"}:
                raise ConfigError(
                    f"option '{option}': column '{name}' has type {schema.field(name).type}, "
                    "which has no order"
                )


def _check_grouped_functions(schema: TableSchema, groups: Sequence[SequenceGroup]) -> None:
    sequence = {name for group in groups for name in group.sequence}
    grouped = {name for group in groups for name in group.columns}
    for name in schema.field_names:
        chosen = function_name(schema.options, name)
        if chosen is None or name in sequence or name in schema.primary_keys:
            continue
        if chosen != LAST_NON_NULL_VALUE and name not in grouped:
            raise ConfigError(
                f"aggregate function '{chosen}' of column '{name}' needs a sequence group that "
                "holds the column; add it to a 'fields.<columns>.sequence-group'"
            )


def _check_aggregation(rules: MergeRules) -> None:
    for name, function in rules.functions.items():
        if rules.remove_on_delete and function.ignore_retract:
            raise ConfigError(
                f"options '{honoured.AGGREGATION_REMOVE.name}' and "
                f"'{FIELDS_PREFIX}{name}.ignore-retract' contradict each other; choose one"
            )


def _check_function(column: DataField, function: FieldFunction) -> None:
    if function.name in _SKETCH_FUNCTIONS:
        return
    if function.name not in _TYPE_CHECKS:
        raise ConfigError(
            f"aggregate function '{function.name}' of column '{column.name}' does not exist; "
            f"there are {', '.join(sorted(_TYPE_CHECKS))}"
        )
    misfit = _misfit(column, function)
    if misfit is not None:
        raise ConfigError(misfit)


def _misfit(column: DataField, function: FieldFunction) -> str | None:
    check = _TYPE_CHECKS.get(function.name)
    wanted = check(column.type, function) if check is not None else None
    if wanted is None:
        return None
    return (
        f"aggregate function '{function.name}' of column '{column.name}' needs {wanted}, not "
        f"{column.type}"
    )


_TypeCheck = Callable[[DataType, FieldFunction], str | None]
"""Returns the type that a function requires of a column; None if the column has such a type."""


def _any(t: DataType, function: FieldFunction) -> str | None:
    return None


def _number(t: DataType, function: FieldFunction) -> str | None:
    return None if t.root in _NUMBER_ROOTS else "a number"


def _ordered(t: DataType, function: FieldFunction) -> str | None:
    return "a type with an order" if t.root in _UNORDERED_ROOTS else None


def _boolean(t: DataType, function: FieldFunction) -> str | None:
    return None if t.root == "BOOLEAN" else "BOOLEAN"


def _text(t: DataType, function: FieldFunction) -> str | None:
    return None if t.root == "STRING" else "STRING"


def _bytes(t: DataType, function: FieldFunction) -> str | None:
    return None if t.root in ("BYTES", "VARBINARY") else "BYTES or VARBINARY"


def _array(t: DataType, function: FieldFunction) -> str | None:
    return None if t.root == "ARRAY" else "an ARRAY"


def _map(t: DataType, function: FieldFunction) -> str | None:
    return None if t.root == "MAP" else "a MAP"


def _timed_map(t: DataType, function: FieldFunction) -> str | None:
    value = t.value if t.root == "MAP" else None
    if value is None or value.root != "ROW" or len(value.fields) < 2:
        return "a MAP with values that are a ROW of two or more fields"
    names = [inner.name for inner in value.fields]
    name = names[-1] if function.time_field is None else function.time_field
    if name not in names:
        return f"a field '{name}' in the ROW of its values (option 'ts-field')"
    if value.fields[names.index(name)].type.root not in CHARACTER_ROOTS:
        return f"a text in field '{name}', by which entries are compared"
    return None


def _rows(t: DataType, function: FieldFunction) -> str | None:
    element = t.element if t.root == "ARRAY" else None
    if element is None or element.root != "ROW":
        return "an ARRAY of ROW"
    missing = sorted(set(function.nested_key) - {inner.name for inner in element.fields})
    return f"fields {missing} in its ROW (option 'nested-key')" if missing else None


def _keyed_rows(t: DataType, function: FieldFunction) -> str | None:
    return _rows(t, function) if function.nested_key else "the option 'nested-key'"


_TYPE_CHECKS: Mapping[str, _TypeCheck] = {
    "sum": _number,
    "product": _number,
    "max": _ordered,
    "min": _ordered,
    "last_value": _any,
    "last_non_null_value": _any,
    "first_value": _any,
    "first_non_null_value": _any,
    "first_not_null_value": _any,
    "primary-key": _any,
    "bool_and": _boolean,
    "bool_or": _boolean,
    "listagg": _text,
    "rbm32": _bytes,
    "rbm64": _bytes,
    "collect": _array,
    "merge_map": _map,
    "merge_map_with_keytime": _timed_map,
    "nested_update": _rows,
    "nested_partial_update": _keyed_rows,
}
