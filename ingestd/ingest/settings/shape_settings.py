"""Settings for columns that a target table adds to the columns of its source, or omits.

`row_shape` applies these settings to rows.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from ingestd.errors import ConfigError
from ingestd.ingest.computed.columns import ComputedColumn, fixed_type, in_order
from ingestd.ingest.computed.metadata_columns import METADATA_TYPES
from ingestd.paimon.spec.data_types import DataType


@dataclass(frozen=True, slots=True)
class ShapeSettings:
    """Computed columns, metadata columns, and selected source columns; a None field is not set.

    `include` are the selected source columns (None for all), minus the columns in `exclude`.
    `metadata_prefix` is prepended to the names of metadata columns.
    """

    computed: tuple[ComputedColumn, ...] = ()
    metadata: tuple[str, ...] | None = None
    metadata_prefix: str | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()

    def over(self, defaults: "ShapeSettings") -> "ShapeSettings":
        """Return these settings, with unset fields and further computed columns from `defaults`."""
        own = {one.name for one in self.computed}
        computed = [one for one in defaults.computed if one.name not in own]
        prefix = self.metadata_prefix
        return replace(
            self,
            computed=(*computed, *self.computed),
            metadata=defaults.metadata if self.metadata is None else self.metadata,
            metadata_prefix=defaults.metadata_prefix if prefix is None else prefix,
        )

    @property
    def is_plain(self) -> bool:
        """Whether the columns are exactly those of the source."""
        nothing_added = not self.computed and not self.metadata
        return nothing_added and self.include is None and not self.exclude

    def metadata_columns(self) -> Iterator[tuple[str, str]]:
        """Yield each metadata column: its name in the table, and the name of its metadata."""
        prefix = self.metadata_prefix or ""
        return ((f"{prefix}{name}", name) for name in self.metadata or ())

    def selects(self, name: str) -> bool:
        """Return whether a column of the source is included."""
        return (self.include is None or name in self.include) and name not in self.exclude

    def added(self) -> frozenset[str]:
        """Return the names of the added columns."""
        names = {name for name, _ in self.metadata_columns()}
        return frozenset(names | {one.name for one in self.computed})

    def needed(self) -> Iterator[str]:
        """Yield the columns that computed columns depend on."""
        return (name for one in self.computed for name in one.sources)

    def gives_way(self, name: str) -> bool:
        """Return whether an added column replaces the source column of this name."""
        return not self.selects(name) and name in self.added()

    def sources_of(self, name: str) -> Iterator[str]:
        """Yield the source columns that a computed column depends on.

        Yields the column itself if it is not computed.
        """
        by_name = {one.name: one for one in self.computed}
        waiting, seen = [name], set[str]()
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in by_name:
                waiting += by_name[one].sources
            else:
                yield one

    def added_type(self, name: str, types: Mapping[str, DataType]) -> DataType | None:
        """Return the type of an added column, given the declared types.

        Returns None if the type is unknown or the column is not an added column. Raises ConfigError
        if the types are incompatible.
        """
        for column, what in self.metadata_columns():
            if column == name:
                return METADATA_TYPES[what]
        return next((fixed_type(one, types) for one in self.computed if one.name == name), None)


def check_shape(shape: ShapeSettings, primary_keys: Collection[str] = ()) -> None:
    """Raise ConfigError if added columns conflict, or no column is selected."""
    in_order(shape.computed)
    for one in shape.computed:
        if one.name in primary_keys and one.is_another_each_time:
            raise ConfigError(f"{one}: a primary key whose value changes each time finds no row")
    metadata = {name for name, _ in shape.metadata_columns()}
    for one in shape.computed:
        if one.name in metadata:
            raise ConfigError(f"{one}: there is a metadata column of that name")
    both = sorted(set(shape.include or ()) & set(shape.exclude))
    if both:
        raise ConfigError(f"select: column '{both[0]}' is both included and excluded")
    if shape.include == ():
        raise ConfigError("select.include: it leaves no column")
