"""What a decoder is told of column types: those of the target tables, by source table.

Looked up as the decoder asks, because source tables only show themselves in the records.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping

from ingestd.cdc.base import SourceTable
from ingestd.ingest.rows.router import Router
from ingestd.ingest.rows.row_shape import row_shape
from ingestd.ingest.schemas.column_history import read_column_history, with_old_names
from ingestd.ingest.settings.context import BatchContext
from ingestd.paimon.spec.data_types import DataType

ColumnTypes = Mapping[str, DataType]


class _ByRoute(Mapping[SourceTable, ColumnTypes]):
    """Column types by source table, found through the route of the source table."""

    def __init__(self, context: BatchContext, router: Router, topic: str) -> None:
        self._context = context
        self._router = router
        self._topic = topic
        self._found: dict[SourceTable, ColumnTypes | None] = {}

    def __getitem__(self, source_table: SourceTable) -> ColumnTypes:
        if source_table not in self._found:
            self._found[source_table] = self._find(source_table)
        types = self._found[source_table]
        if types is None:
            raise KeyError(source_table)
        return types

    def _find(self, source_table: SourceTable) -> ColumnTypes | None:
        route = self._router.route_of(self._topic, source_table)
        types = None if route is None else self._types(route.table)
        if route is None or types is None:
            return None
        shape = row_shape(route, self._context.settings_of(route.table))
        return types if shape is None else shape.as_in_source(types)

    def __iter__(self) -> Iterator[SourceTable]:
        """Source tables that the context's tables are known to be fed by."""
        known = {
            feed.source_table for table in self._context.tables.values() for feed in table.feeds
        }
        return (source_table for source_table in known if self.get(source_table) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @abstractmethod
    def _types(self, table: str) -> ColumnTypes | None:
        """Types by column of a target table, None if nothing is known of it."""


class TableColumns(_ByRoute):
    """Types of the columns that the target tables have as of the batch's start.

    Only those of the primary key are NOT NULL.
    """

    def _types(self, table: str) -> ColumnTypes | None:
        target = self._context.tables.get(table)
        if target is None:
            return None
        schema = target.table.schema
        types = {
            column.name: column.type.not_null()
            if column.name in schema.primary_keys
            else column.type.as_nullable()
            for column in schema.fields
        }
        return with_old_names(types, read_column_history(schema.options, table))


class DeclaredColumns(_ByRoute):
    """Types that the configuration fixes for columns of the target tables."""

    def _types(self, table: str) -> ColumnTypes | None:
        return self._context.settings_of(table).column_types or None
