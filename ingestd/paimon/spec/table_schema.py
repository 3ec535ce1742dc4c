"""A version of a table's schema: columns, keys and options.

Schema files are parsed in `schema`, changes applied in `schema_apply`, and schemas validated in
`schema_rules`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingestd.paimon.spec.data_types import DataField, DataType

SCHEMA_VERSION = 3


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A version of a table's schema.

    `id` is the number of the version, `highest_field_id` the highest id that a column or nested
    field ever had, `time_millis` the time of the version in milliseconds since 1970, and `version`
    the version of the file format.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#schema
    """

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    time_millis: int = 0
    version: int = SCHEMA_VERSION

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """Primary key columns except partition keys, in primary key order."""
        return tuple(key for key in self.primary_keys if key not in self.partition_keys)

    @property
    def field_names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.fields)

    def field(self, name: str) -> DataField:
        """Return the column with this name. Raises KeyError if the schema has no such column."""
        for column in self.fields:
            if column.name == name:
                return column
        raise KeyError(name)

    def select(self, names: Sequence[str]) -> tuple[DataField, ...]:
        """Return the columns with these names, in that order.

        Raises KeyError for an unknown name.
        """
        by_name = {column.name: column for column in self.fields}
        return tuple(by_name[name] for name in names)

    @property
    def partition_types(self) -> tuple[DataType, ...]:
        """Types of the partition columns, in the order of the partition keys."""
        return tuple(column.type for column in self.select(self.partition_keys))

    @property
    def key_fields(self) -> tuple[DataField, ...]:
        """Columns of the trimmed primary key, in primary key order."""
        return self.select(self.trimmed_primary_keys)


def reassign_ids(t: DataType, ids: Iterator[int]) -> DataType:
    """Return a type with new ids for all its ROW fields, taken from `ids`.

    As in Java, a field takes its id after the fields nested in it.
    """
    fields = tuple(
        replace(inner, type=reassign_ids(inner.type, ids), id=next(ids)) for inner in t.fields
    )
    return replace(
        t,
        element=reassign_ids(t.element, ids) if t.element else None,
        key=reassign_ids(t.key, ids) if t.key else None,
        value=reassign_ids(t.value, ids) if t.value else None,
        fields=fields,
    )
