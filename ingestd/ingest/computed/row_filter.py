"""The row filter of a table, `where`: a SQL expression that is true for the rows to keep.

A row passes if the expression is true, and fails if it is false or NULL, as in SQL. In a table with
a primary key, a new version of a row that fails deletes the row; `filter_refusal` checks whether
the merge options of the table allow this.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestd.errors import ConfigError, FormatError, SchemaConflictError, UnsupportedError
from ingestd.ingest.computed.expressions.cells import Frame
from ingestd.ingest.computed.expressions.expression import (
    Expression,
    Outcome,
    read_expression,
    run_expression,
)
from ingestd.paimon.spec.changelog_checks import writes_input
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.merge_rules import merge_rules
from ingestd.paimon.spec.table_schema import TableSchema

_BOOLEAN = DataType("BOOLEAN")


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A SQL condition on the rows of a table: rows for which it is true are kept."""

    expression: Expression

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns to which the condition refers."""
        return self.expression.columns

    def check(self, types: Mapping[str, DataType]) -> None:
        """Raise ConfigError if the condition does not accept these types, or is not BOOLEAN.

        Columns that `types` lacks can have any type.
        """
        try:
            data_type = self.expression.type_with(types)
        except ConfigError as error:
            raise ConfigError(f"{self}: {error.message}") from error
        if data_type not in (None, _BOOLEAN):
            raise ConfigError(self._other_type(data_type))

    def run(self, types: Mapping[str, DataType], frame: Frame) -> Outcome:
        """Evaluate the condition for the rows of a frame, as BOOLEAN; a missing column is NULL.

        Raises SchemaConflictError if the condition does not accept these types, or is not BOOLEAN.
        """
        try:
            outcome = run_expression(self.expression, types, frame)
        except ConfigError as error:
            raise SchemaConflictError(f"{self}: {error.message}") from error
        if outcome is None:
            nulls = pa.nulls(frame.rows, pa.bool_())
            return Outcome(nulls, _BOOLEAN, np.zeros(frame.rows, np.bool_))
        if outcome.type != _BOOLEAN:
            raise SchemaConflictError(self._other_type(outcome.type))
        return outcome

    def _other_type(self, data_type: DataType | None) -> str:
        return f"{self}: it is {data_type}, not BOOLEAN; compare it with a value"

    def __str__(self) -> str:
        return f"where {self.expression}"


def parse_filter(text: str) -> RowFilter:
    """Parse the condition of a row filter.

    Raises ConfigError if it is invalid, is not BOOLEAN, or depends on the current time.
    """
    try:
        row_filter = RowFilter(read_expression(text.strip()))
    except (ConfigError, FormatError, UnsupportedError, pa.ArrowInvalid) as error:
        raise ConfigError(f"where {text.strip()}: {error}") from error
    if row_filter.expression.depends_on_time:
        raise ConfigError(
            f"{row_filter}: its result changes with the time, so that records that are read again "
            "would give other rows; compare columns with each other or with constants"
        )
    row_filter.check({})
    return row_filter


def filter_refusal(schema: TableSchema) -> str | None:
    """Return why a table cannot have a row filter, and what to change, or None if it can.

    Raises ConfigError if merge options of the table are invalid.
    """
    if not schema.primary_keys:
        return None
    rules = merge_rules(schema)
    if rules.rowkind_field is not None:
        return (
            "where cannot be combined with 'rowkind.field', whose column gives the kind of each "
            "row; remove one of them"
        )
    if writes_input(schema):
        return (
            "where cannot be combined with 'changelog-producer' = 'input', whose changelog is that "
            "of the source; set 'changelog-producer' to 'lookup' or 'full-compaction'"
        )
    if rules.engine == "deduplicate" or rules.remove_on_delete or rules.ignore_delete:
        return None
    remove = f", or '{rules.engine}.remove-record-on-delete' = 'true' when the table is created"
    return (
        "where deletes rows that no longer pass, and 'merge-engine' = "
        f"'{rules.engine}' does not; set 'ignore-delete' = 'true' to leave out changes that do not "
        f"pass{'' if rules.engine == 'first-row' else remove}"
    )
