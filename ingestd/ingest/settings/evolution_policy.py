"""Which schema changes of its source a table applies, and how it handles all other changes."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ingestd.errors import ConfigError
from ingestd.ingest.values.type_merge import merge_types
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.iceberg_rules import type_without_iceberg
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.spec.type_casts import can_cast

EvolutionMode = Literal["evolve", "add-columns", "none"]
IncompatibleSchema = Literal["fail", "dead-letter", "ignore", "string", "new-column"]
OnRename = Literal["add", "rename"]
OnDrop = Literal["keep", "drop"]
OnComment = Literal["apply", "ignore"]
_TEXT = DataType("STRING")
MAX_COLUMNS = 2000
"""The default for the maximum number of columns of a table."""


@dataclass(frozen=True, slots=True)
class EvolutionPolicy:
    """The policy for new columns and types in messages; a field that is None is not set.

    `mode` sets which changes are allowed, and `on_refused` what happens if a change is not allowed:
    by default, records whose values do not fit become dead letters; "fail" stops the pipeline;
    "ignore" omits new columns; "string" converts a column to STRING if no type holds old and new
    values; "new-column" stores the new values in a separate column. `aliases` maps the new names of
    renamed columns to the old names, and `drop` lists dropped columns. `on_rename` and `on_drop`
    set whether the table applies renames and drops found in DDL of the source, and `on_comment`
    whether it takes the source's comments. `max_columns` is the maximum number of columns of a
    table, including added columns.
    """

    mode: EvolutionMode | None = None
    on_refused: IncompatibleSchema | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    on_rename: OnRename | None = None
    on_drop: OnDrop | None = None
    max_columns: int | None = None
    on_comment: OnComment | None = None

    def over(self, defaults: "EvolutionPolicy") -> "EvolutionPolicy":
        """Return this policy, with unset fields taken from `defaults`.

        `aliases` and `drop` are not inherited.
        """
        return replace(
            self,
            mode=self.mode or defaults.mode,
            on_refused=self.on_refused or defaults.on_refused,
            on_rename=self.on_rename or defaults.on_rename,
            on_drop=self.on_drop or defaults.on_drop,
            max_columns=self.max_columns or defaults.max_columns,
            on_comment=self.on_comment or defaults.on_comment,
        )

    def follows(self, old: str, new: str | None) -> bool:
        """Return whether the table applies a rename (or drop, if `new` is None) of its source.

        Returns False for a column whose rename or drop is declared in the configuration, and by
        default, if `on_rename` or `on_drop` is not set.
        """
        if old in self.drop or old in self.aliases.values():
            return False
        return self.on_drop == "drop" if new is None else self.on_rename == "rename"

    @property
    def column_limit(self) -> int:
        """The maximum number of columns, by the policy or by default."""
        return self.max_columns or MAX_COLUMNS

    @property
    def fails(self) -> bool:
        """Whether a change that is not allowed stops the pipeline."""
        return self.on_refused == "fail"

    def renames(self, schema: TableSchema) -> Iterator[tuple[str, str]]:
        """Yield the old and the new name of each declared rename that the table has not applied."""
        names = schema.field_names
        for new, old in self.aliases.items():
            if old in names and new not in names:
                yield old, new

    def drops(self, schema: TableSchema) -> Iterator[str]:
        """Return an iterator over the columns declared as dropped that the table still has."""
        return (name for name in self.drop if name in schema.field_names)

    def is_settled(self, schema: TableSchema) -> bool:
        """Return whether all declared changes have been applied to the table."""
        return not any(self.renames(schema)) and not any(self.drops(schema))


def check_policy(policy: EvolutionPolicy) -> None:
    """Raise ConfigError if settings contradict each other.

    These are contradictions: `on_refused` needs changes that `mode` does not allow; a new name in
    `aliases` is also an old name or a dropped column; an old name has two new names.
    """
    mode, on_refused = policy.mode or "evolve", policy.on_refused
    if on_refused == "string" and mode != "evolve":
        raise ConfigError(
            "schema.on-incompatible-schema 'string' requires schema.evolution 'evolve'"
        )
    if on_refused == "new-column" and mode == "none":
        raise ConfigError(
            "schema.on-incompatible-schema 'new-column' adds columns: evolution is 'none'"
        )
    both = sorted(policy.aliases.keys() & (set(policy.aliases.values()) | set(policy.drop)))
    if both:
        raise ConfigError(f"schema: column '{both[0]}' cannot be both a new name and an old one")
    old_names = list(policy.aliases.values())
    twice = [name for name in old_names if old_names.count(name) > 1]
    if twice:
        raise ConfigError(f"schema.aliases: column '{twice[0]}' has two new names")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which new columns and wider types a table accepts under its evolution policy.

    `grow` maps the columns to add or widen to the types that they must be able to hold. `refused`
    maps columns that may not be added or widened to the reason. `moved` maps columns to the names
    of separate columns in which their new values are stored.
    """

    grow: Mapping[str, DataType]
    refused: Mapping[str, str] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)


def judge_growth(
    schema: TableSchema,
    beyond: Mapping[str, DataType],
    policy: EvolutionPolicy,
    names: Collection[str],
) -> Verdict:
    """Decide which of the columns `beyond` are added or widened, refused, or moved.

    These are the columns that the table lacks, or whose type in the table is too narrow, with the
    types in messages. `names` are all columns of the messages: values are not moved to a column
    with one of these names. If `policy.fails`, all columns are in `grow`, and the driver raises the
    error.
    """
    if policy.fails:
        return Verdict(beyond)
    grow: dict[str, DataType] = {}
    refused: dict[str, str] = {}
    moved: dict[str, str] = {}
    room = policy.column_limit - len(schema.fields)
    for name, data_type in beyond.items():
        why = rejection_reason(schema, name, data_type, policy)
        if why is None and name not in schema.field_names:
            room -= 1
            why = None if room >= 0 else _crowded(policy)
        target = f"{name}_{data_type.root.lower()}"
        if why is None:
            grow[name] = data_type
        elif policy.on_refused == "string" and may_be_text(schema, name, policy):
            grow[name] = _TEXT
        elif policy.on_refused == "new-column" and target not in names and _is_plain(schema, name):
            moved[name] = target
        else:
            refused[name] = why
    return Verdict(grow, refused, moved)


def rejection_reason(
    schema: TableSchema, name: str, data_type: DataType, policy: EvolutionPolicy
) -> str | None:
    """Return why a column may not be added, or widened to hold a type; None if it may.

    `name` is added if the table lacks it. The maximum number of columns is not checked.
    """
    mode = policy.mode or "evolve"
    if lacking := type_without_iceberg(schema.options, data_type):
        return f"{lacking} has no type in Iceberg, whose metadata the table has"
    if name not in schema.field_names:
        return f"it is new, and schema.evolution is {mode}" if mode == "none" else None
    if mode != "evolve":
        return f"schema.evolution is {mode}"
    if name in (*schema.primary_keys, *schema.partition_keys):
        return "a key column cannot change its type"
    current = schema.field(name).type
    merged = merge_types(current, data_type)
    if merged is None:
        return "no type holds both"
    if can_cast(current, merged):
        return None
    return f"type {current.as_nullable()} cannot be changed to {merged.as_nullable()}"


def _crowded(policy: EvolutionPolicy) -> str:
    limit = policy.column_limit
    return f"it is new, and the table has reached its limit (schema.max-columns {limit})"


def may_be_text(schema: TableSchema, name: str, policy: EvolutionPolicy) -> bool:
    """Return whether a column can become STRING if no other type fits, and `policy` allows it.

    False for key and partition columns, for columns that are STRING already, for columns that the
    table lacks, and for types without a cast to STRING.
    """
    if policy.mode not in (None, "evolve") or not _is_plain(schema, name):
        return False
    current = schema.field(name).type
    return current.root != "STRING" and can_cast(current, _TEXT)


def _is_plain(schema: TableSchema, name: str) -> bool:
    """Return whether the table has the column, and it is not a primary or partition key column."""
    keys = (*schema.primary_keys, *schema.partition_keys)
    return name in schema.field_names and name not in keys
