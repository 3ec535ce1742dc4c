"""The columns of a source table and of its table in the lake, paired for a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from ingestd.compare.canonical import Form, has_canonical_text
from ingestd.errors import UnsupportedError
from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.spec.data_types import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataField, DataType

WHOLE_NUMBERS = INTEGER_ROOTS | TIMESTAMP_ROOTS | {"DATE"}
"""Types whose values sort as the integers in their canonical texts."""


Key = tuple[str, ...]
"""The canonical texts of the primary key of a row, in the order of the key columns."""


@dataclass(frozen=True, slots=True)
class DatabaseColumn:
    """A column of the source database, and its properties that matter to a comparison.

    `kind` is its type without length and precision, `type_text` the full type. `is_ordered` states
    whether the database sorts its values as Python sorts their canonical texts or, if `is_number`,
    the integers in these texts. `unpublished` is the reason why change streams do not contain its
    values, "" if they do. `is_nullable` is false for a column of MySQL that is NOT NULL.
    """

    name: str
    kind: str
    type_text: str
    is_ordered: bool = False
    is_number: bool = False
    unpublished: str = ""
    is_nullable: bool = True


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table of the source database: its columns by name, and its primary key in order."""

    schema: str
    name: str
    columns: Mapping[str, DatabaseColumn]
    key: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of the lake and its column in the database, compared by canonical texts.

    Equal values have equal canonical texts. `text_sql` computes the canonical text in the database;
    values in the lake are normalized by `form` to the same text.
    """

    name: str
    type: DataType
    source: DatabaseColumn
    text_sql: str
    form: Form = Form.AS_IS

    @property
    def is_ordered(self) -> bool:
        """Whether the database sorts the column as Python sorts its canonical texts.

        For a column of numbers, the integers in the texts are sorted.
        """
        fits = not self.source.is_number or self.type.root in WHOLE_NUMBERS
        return self.source.is_ordered and fits


@dataclass(frozen=True, slots=True)
class UncomparedColumn:
    """A column of the lake or of the database that is not compared."""

    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """The columns of one table comparison: the compared pairs, and the columns left out.

    The first `key_size` of `columns` are the key columns in key order.
    """

    columns: tuple[ComparedColumn, ...]
    key_size: int
    others: tuple[UncomparedColumn, ...]

    @property
    def key(self) -> tuple[ComparedColumn, ...]:
        """The columns of the key."""
        return self.columns[: self.key_size]

    @property
    def is_ordered(self) -> bool:
        """Whether the database sorts keys as `order_of` does."""
        return all(column.is_ordered for column in self.key)

    def order_of(self, key: Key) -> tuple[int | str, ...]:
        """Return a tuple by which Python sorts keys: the canonical texts, or the integers in them.

        Columns of the database with `is_number` are sorted by integers.
        """
        pairs = zip(self.key, key, strict=True)
        return tuple(int(text) if column.source.is_number else text for column, text in pairs)

    @property
    def fingerprint(self) -> str:
        """A checksum of the definitions of the compared columns.

        As long as it is the same, equal rows have equal hashes.
        """
        parts = [
            (column.name, str(column.type), column.text_sql, column.form) for column in self.columns
        ]
        return sha256(repr(parts).encode()).hexdigest()[:16]

    @property
    def names(self) -> list[str]:
        """The names of the compared columns in the lake."""
        return [column.name for column in self.columns]


class ColumnSql(Protocol):
    """The part of a SQL dialect that states how columns are compared."""

    def text_sql(self, column: DatabaseColumn, t: DataType) -> tuple[str, Form] | None:
        """Return the SQL expression of a column's canonical text, and its form in the lake.

        `t` is the column's type in the lake. Returns None if the column cannot be compared.
        """

    def key_sql(self, column: DatabaseColumn, t: DataType) -> str | None:
        """Return the SQL expression of a key value, whose one parameter `%s` is its canonical text.

        `t` is the column's type in the lake. Returns None if the column cannot be in a key.
        """


def pair_columns(
    source: DatabaseTable,
    fields: Sequence[DataField],
    settings: TableSettings,
    sql: ColumnSql,
) -> Pairing:
    """Pair the columns of a source table with the fields of its table in the lake.

    `settings` are those of the lake's table, which may rename, add or leave out columns; `sql` is
    the dialect of the database. Raises UnsupportedError if the source table has no primary key, or
    a key column is missing in the lake or cannot be compared.
    """
    types = {field.name: field.type for field in fields}
    added = settings.shape.added()
    pairs: dict[str, ComparedColumn] = {}
    others: list[UncomparedColumn] = []
    for name, column in source.columns.items():
        target = _target_name(name, types, settings)
        paired = _paired(column, target, types, settings, sql)
        if isinstance(paired, ComparedColumn):
            pairs[name] = paired
        else:
            others.append(UncomparedColumn(target, paired))
    taken = {column.name for column in pairs.values()} | {other.column for other in others}
    for name in types.keys() - taken:
        reason = "added by the configuration" if name in added else "not in the source"
        others.append(UncomparedColumn(name, reason))
    _check_key(source, pairs, others, sql)
    key = [pairs.pop(name) for name in source.key]
    ordered = tuple(sorted(others, key=lambda other: other.column))
    return Pairing((*key, *pairs.values()), len(key), ordered)


def _target_name(name: str, types: Mapping[str, DataType], settings: TableSettings) -> str:
    """Return the name in the lake of a column of the source."""
    if name in types:
        return name
    renamed = {old: new for new, old in settings.evolution.aliases.items()}
    return renamed.get(name, name)


def _paired(
    column: DatabaseColumn,
    target: str,
    types: Mapping[str, DataType],
    settings: TableSettings,
    sql: ColumnSql,
) -> ComparedColumn | str:
    """Return the compared column, or the reason why the column is not compared."""
    if column.unpublished:
        return column.unpublished
    if target in settings.shape.added() and target in types:
        return "added by the configuration"
    if target not in types:
        left_out = not settings.shape.selects(target) or column.name in settings.evolution.drop
        return "left out by the configuration" if left_out else "not in the table of the lake"
    t = types[target]
    canonical = sql.text_sql(column, t) if has_canonical_text(t) else None
    if canonical is None:
        return f"{column.type_text} as {t} cannot be compared"
    return ComparedColumn(target, t, column, canonical[0], canonical[1])


def _check_key(
    source: DatabaseTable,
    pairs: Mapping[str, ComparedColumn],
    others: Sequence[UncomparedColumn],
    sql: ColumnSql,
) -> None:
    if not source.key:
        raise UnsupportedError(f"{source} has no primary key, by which rows are compared")
    reasons = {other.column: other.reason for other in others}
    for name in source.key:
        if name not in pairs:
            reason = reasons.get(name, "not in the table of the lake")
            raise UnsupportedError(f"column {name} of the primary key of {source}: {reason}")
        column = pairs[name]
        if sql.key_sql(column.source, column.type) is None:
            raise UnsupportedError(
                f"column {name} of the primary key of {source}: keys of the type "
                f"{column.source.type_text} cannot be compared"
            )
