"""How far the schema of a table may follow its source, and what becomes of what may not."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ingestd.errors import ConfigError
from ingestd.ingest.values.type_merge import merge_types
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.spec.type_casts import can_cast

EvolutionMode = Literal["evolve", "add-columns", "none"]
IncompatibleSchema = Literal["fail", "dead-letter", "ignore", "string", "new-column"]
OnRename = Literal["add", "rename"]
OnDrop = Literal["keep", "drop"]
_TEXT = DataType("STRING")
MAX_COLUMNS = 2000
"""Columns that a table grows to at most, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class EvolutionPolicy:
    """What a table's schema does when messages bring something else; None: not said.

    `mode` says which changes there may be, `on_refused` what happens to the others: records whose
    values do not fit become dead letters (the default), or the pipeline stops. Beside that,
    "ignore" leaves out new columns, "string" makes text of a column of which no type holds old and
    new values, and "new-column" puts the new ones into a column of their own. `aliases` (new name
    to old name) are columns that were renamed, `drop` columns that are gone; both by declaration.
    `on_rename` and `on_drop` say whether the table follows what statements of the source prove.
    `max_columns` is how many columns a table may get, those that are not the source's among them.
    """

    mode: EvolutionMode | None = None
    on_refused: IncompatibleSchema | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    on_rename: OnRename | None = None
    on_drop: OnDrop | None = None
    max_columns: int | None = None

    def over(self, defaults: "EvolutionPolicy") -> "EvolutionPolicy":
        """This policy, with the defaults where it is silent."""
        return replace(
            self,
            mode=self.mode or defaults.mode,
            on_refused=self.on_refused or defaults.on_refused,
            on_rename=self.on_rename or defaults.on_rename,
            on_drop=self.on_drop or defaults.on_drop,
            max_columns=self.max_columns or defaults.max_columns,
        )

    def follows(self, old: str, new: str | None) -> bool:
        """Whether the table follows its source where a column got a new name, or none: went."""
        if old in self.drop or old in self.aliases.values():
            return False
        return self.on_drop == "drop" if new is None else self.on_rename == "rename"

    @property
    def column_limit(self) -> int:
        """Beyond this many columns a table gets no others."""
        return self.max_columns or MAX_COLUMNS

    @property
    def fails(self) -> bool:
        """Whether a change that may not be stops the pipeline."""
        return self.on_refused == "fail"

    def renames(self, schema: TableSchema) -> Iterator[tuple[str, str]]:
        """Old and new names of columns that the table still has under their old ones."""
        names = schema.field_names
        for new, old in self.aliases.items():
            if old in names and new not in names:
                yield old, new

    def drops(self, schema: TableSchema) -> Iterator[str]:
        """Columns that are gone but that the table still has."""
        return (name for name in self.drop if name in schema.field_names)

    def is_settled(self, schema: TableSchema) -> bool:
        """Whether the table has followed all that is declared."""
        return not any(self.renames(schema)) and not any(self.drops(schema))


def check_policy(policy: EvolutionPolicy) -> None:
    """ConfigError for a policy that cannot be followed."""
    mode, on_refused = policy.mode or "evolve", policy.on_refused
    if on_refused == "string" and mode != "evolve":
        raise ConfigError(
            "schema.on-incompatible-schema 'string' goes with schema.evolution 'evolve'"
        )
    if on_refused == "new-column" and mode == "none":
        raise ConfigError(
            "schema.on-incompatible-schema 'new-column' adds columns: evolution is 'none'"
        )
    both = sorted(policy.aliases.keys() & (set(policy.aliases.values()) | set(policy.drop)))
    if both:
        raise ConfigError(f"schema: column '{both[0]}' cannot be a new name and an old one at once")
    old_names = list(policy.aliases.values())
    twice = [name for name in old_names if old_names.count(name) > 1]
    if twice:
        raise ConfigError(f"schema.aliases: column '{twice[0]}' has two new names")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What of a table's wanted growth may be.

    `grow` are columns with the types found; `refused` columns (or their types) that may not be,
    with why; `moved` columns whose values go into another one, by old name.
    """

    grow: Mapping[str, DataType]
    refused: Mapping[str, str] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)


def judge_growth(
    schema: TableSchema,
    beyond: Mapping[str, DataType],
    policy: EvolutionPolicy,
    names: Collection[str] = (),
) -> Verdict:
    """Sort the columns that a table lacks, or has with too narrow a type.

    `names` are all columns that the messages bring, in none of which others are put. Where the
    policy is to fail, all of them are to grow, for the driver to refuse with the place.
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
        beside = f"{name}_{data_type.root.lower()}"
        if why is None:
            grow[name] = data_type
        elif policy.on_refused == "string" and may_be_text(schema, name, policy):
            grow[name] = _TEXT
        elif policy.on_refused == "new-column" and beside not in names and _is_plain(schema, name):
            moved[name] = beside
        else:
            refused[name] = why
    return Verdict(grow, refused, moved)


def rejection_reason(
    schema: TableSchema, name: str, found: DataType, policy: EvolutionPolicy
) -> str | None:
    """Why a table may not grow to hold a column of a type; None if it may."""
    mode = policy.mode or "evolve"
    if name not in schema.field_names:
        return f"it is new, and schema.evolution is {mode}" if mode == "none" else None
    if mode != "evolve":
        return f"schema.evolution is {mode}"
    if name in (*schema.primary_keys, *schema.partition_keys):
        return "a key column cannot change its type"
    current = schema.field(name).type
    merged = merge_types(current, found)
    if merged is None:
        return "no type holds both"
    return None if can_cast(current, merged) else "a column cannot change so"


def _crowded(policy: EvolutionPolicy) -> str:
    limit = policy.column_limit
    return f"it is new, and the table has as many columns as it may (schema.max-columns {limit})"


def may_be_text(schema: TableSchema, name: str, policy: EvolutionPolicy) -> bool:
    """Whether a column of the table can become STRING where no other type would do."""
    if policy.mode not in (None, "evolve") or not _is_plain(schema, name):
        return False
    current = schema.field(name).type
    return current.root != "STRING" and can_cast(current, _TEXT)


def _is_plain(schema: TableSchema, name: str) -> bool:
    """Whether the table has a column that is no key."""
    keys = (*schema.primary_keys, *schema.partition_keys)
    return name in schema.field_names and name not in keys
