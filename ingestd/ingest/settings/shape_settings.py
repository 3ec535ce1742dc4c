"""Settings of a target table for added columns, selected columns and rows, and kept deletes.

`row_shape` applies these settings to rows.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ingestd.errors import ConfigError
from ingestd.ingest.computed.computed_columns import ComputedColumn, fixed_type, in_order
from ingestd.ingest.computed.metadata_columns import metadata_column_name, metadata_type
from ingestd.ingest.computed.row_filter import RowFilter
from ingestd.ingest.settings.soft_deletes import (
    DELETED_AT,
    DELETED_AT_TYPE,
    OnDelete,
    SoftDeletes,
)
from ingestd.paimon.spec.data_types import DataType


@dataclass(frozen=True, slots=True)
class ShapeSettings:
    """Computed columns, metadata columns, selected columns and rows; a None field is not set.

    `include` are the selected source columns (None for all), minus the columns in `exclude`.
    `metadata_prefix` is prepended to the names of metadata columns. `where` is the condition on
    the rows to keep, None for all. `on_delete` is "keep" if deletes set the column `deleted_at`.
    """

    computed: tuple[ComputedColumn, ...] = ()
    metadata: tuple[str, ...] | None = None
    metadata_prefix: str | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    where: RowFilter | None = None
    on_delete: OnDelete | None = None
    deleted_at: str | None = None

    def over(self, defaults: "ShapeSettings") -> "ShapeSettings":
        """Return these settings, with unset fields taken from `defaults`.

        Computed columns are merged; these settings take precedence. The selection of source columns
        and of rows is not inherited.
        """
        own = {column.name for column in self.computed}
        computed = [column for column in defaults.computed if column.name not in own]
        prefix = self.metadata_prefix
        return replace(
            self,
            computed=(*computed, *self.computed),
            metadata=defaults.metadata if self.metadata is None else self.metadata,
            metadata_prefix=defaults.metadata_prefix if prefix is None else prefix,
            on_delete=self.on_delete or defaults.on_delete,
            deleted_at=self.deleted_at or defaults.deleted_at,
        )

    @property
    def deletion_column(self) -> str | None:
        """The column with the time of deletes, or None if deletes are applied."""
        return (self.deleted_at or DELETED_AT) if self.on_delete == "keep" else None

    def soft_deletes(self, route_columns: Iterable[str] = ()) -> SoftDeletes | None:
        """Return how deletes are kept as rows, or None if they are applied.

        `route_columns` are the columns that the route adds: like metadata columns, they get their
        values from the delete.
        """
        column = self.deletion_column
        if column is None:
            return None
        metadata = (name for name, _ in self.metadata_columns())
        return SoftDeletes(column, frozenset({column, *metadata, *route_columns}))

    @property
    def is_plain(self) -> bool:
        """Whether columns and rows are exactly those of the source."""
        if self.computed or self.metadata or self.on_delete == "keep":
            return False
        return self.include is None and not self.exclude and self.where is None

    def metadata_columns(self) -> Iterator[tuple[str, str]]:
        """Return an iterator over the (column name, metadata name) of each metadata column."""
        prefix = self.metadata_prefix or ""
        return ((f"{prefix}{metadata_column_name(name)}", name) for name in self.metadata or ())

    def selects(self, name: str) -> bool:
        """Return whether a column of the source is included."""
        return (self.include is None or name in self.include) and name not in self.exclude

    def added(self) -> frozenset[str]:
        """Return the names of computed, metadata and soft-delete columns that the table adds."""
        names = {name for name, _ in self.metadata_columns()}
        names |= {column.name for column in self.computed}
        return frozenset(names if self.deletion_column is None else {*names, self.deletion_column})

    def needed(self) -> Iterator[str]:
        """Return an iterator over the columns from which columns are computed, with duplicates."""
        return (name for column in self.computed for name in column.sources)

    def is_replaced(self, name: str) -> bool:
        """Return whether an added column replaces the source column of this name.

        That is so if a column of this name is added, and the source column is not selected.
        """
        return not self.selects(name) and name in self.added()

    def depends_on(self, names: Iterable[str]) -> frozenset[str]:
        """Return the given columns and all columns that they depend on, directly or indirectly."""
        sources = {column.name: column.sources for column in self.computed}
        waiting, visited = [*names], set[str]()
        while waiting:
            name = waiting.pop()
            if name not in visited:
                visited.add(name)
                waiting += sources.get(name, ())
        return frozenset(visited)

    def sources_of(self, name: str) -> frozenset[str]:
        """Return the source columns that a column depends on; the column itself if not computed."""
        return self.depends_on([name]) - {column.name for column in self.computed}

    def added_type(self, name: str, types: Mapping[str, DataType]) -> DataType | None:
        """Return the type of an added column, given the declared types.

        Returns None if the type is unknown or the column is not an added column. Raises ConfigError
        if a computed column cannot be computed from columns of these types.
        """
        for column, what in self.metadata_columns():
            if column == name:
                return metadata_type(what)
        if name == self.deletion_column:
            return DELETED_AT_TYPE
        return next(
            (fixed_type(computed, types) for computed in self.computed if computed.name == name),
            None,
        )


def check_shape(shape: ShapeSettings, primary_keys: Collection[str] = ()) -> None:
    """Raise ConfigError if settings contradict each other, or select no column.

    The error is also raised if computed columns depend on each other circularly, or if the value of
    a column in `primary_keys` can differ when a record is processed again.
    """
    in_order(shape.computed)
    for column in shape.computed:
        if column.name in primary_keys and column.depends_on_time:
            raise ConfigError(
                f"{column}: a primary key column must keep its value when a record is read again"
            )
    metadata = {name for name, _ in shape.metadata_columns()}
    for column in shape.computed:
        if column.name in metadata:
            raise ConfigError(f"{column}: a metadata column has the same name")
    if shape.deletion_column in {*metadata, *(column.name for column in shape.computed)}:
        raise ConfigError(
            f"deleted-at: a computed or metadata column is named '{shape.deletion_column}', too"
        )
    both = sorted(set(shape.include or ()) & set(shape.exclude))
    if both:
        raise ConfigError(f"select: column '{both[0]}' is both included and excluded")
    if shape.include == ():
        raise ConfigError("select.include selects no column")
