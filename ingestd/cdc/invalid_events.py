"""Find the events of a table that cannot become rows, and the reason of each."""

from collections.abc import Iterator, Sequence

from ingestd.cdc.change_rows import Events, Value, is_absent, lay_out, read_column
from ingestd.cdc.plan_column import PlanColumn
from ingestd.cdc.record_errors import (
    BUILD_ERRORS,
    PARSE_ERRORS,
    Reason,
    RecordError,
    explain_cell,
)
from ingestd.cdc.row_plan import RowPlan

_READ_ERRORS = (*BUILD_ERRORS, *PARSE_ERRORS)


def partition_valid(plan: RowPlan, events: Events) -> dict[int, Reason]:
    """Return the reason, by index, of each event that `change_rows.assemble` would refuse."""
    size = len(events.changes)
    bad: dict[int, Reason] = {}
    try:
        lay_out(plan, events)
    except BUILD_ERRORS:
        for index in range(size):
            try:
                lay_out(plan, events.take((index,)))
            except BUILD_ERRORS as error:
                bad[index] = reason_of(error)
    good = [index for index in range(size) if index not in bad]
    if good:
        for index, reason in _bad_cells(plan, events.take(good)).items():
            bad[good[index]] = reason
    return bad


def reason_of(error: Exception) -> Reason:
    """Return the reason for one of `BUILD_ERRORS` of a whole event."""
    if isinstance(error, RecordError):
        return error.reason
    return Reason("decode", "wrong-type", str(error))


def _bad_cells(plan: RowPlan, events: Events) -> dict[int, Reason]:
    laid_out = lay_out(plan, events)
    bad: dict[int, Reason] = {}
    for column in plan.columns:
        values = column.values_of(laid_out.rows)
        if column.column is None or is_absent(values):
            continue
        for row, reason in _invalid(column, values, 0):
            bad.setdefault(row if laid_out.events is None else int(laid_out.events[row]), reason)
    return bad


def _invalid(
    column: PlanColumn, values: Sequence[Value], start: int
) -> Iterator[tuple[int, Reason]]:
    """Indices of values that do not fit the column, found by halving."""
    try:
        read_column(column, values)
    except _READ_ERRORS as error:
        if len(values) > 1:
            middle = len(values) // 2
            yield from _invalid(column, values[:middle], start)
            yield from _invalid(column, values[middle:], start + middle)
        else:
            wanted = column.column.table_type if column.column else None
            yield start, explain_cell(error, column.name, values[0], wanted)
