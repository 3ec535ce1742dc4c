"""CASE, COALESCE and similar functions, which choose a value for each row.

A row fails only if a part that it uses fails: a condition up to the first true condition, or the
chosen value.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.cells import (
    ExpressionCells,
    Kernel,
    either,
    only,
    strict,
    true_rows,
)
from ingestd.ingest.computed.expressions.comparisons import equal, greater, less
from ingestd.ingest.computed.expressions.function import BOOLEAN, Argument, Function, Plan
from ingestd.ingest.computed.expressions.logic import common_type, comparable
from ingestd.paimon.spec.arrow import Values, to_arrow_type
from ingestd.paimon.spec.data_types import DataType


def _case(arguments: Sequence[Argument]) -> Plan:
    """Plan CASE, whose arguments are alternating conditions and values, then the value of ELSE."""
    conditions, values = arguments[:-1:2], (*arguments[1::2], arguments[-1])
    for condition in conditions:
        if condition.type is not None and condition.type.root != "BOOLEAN":
            raise ConfigError(f"a condition is {condition.type}, not BOOLEAN")
    result_type = common_type("CASE", values)
    if result_type is None:
        return Plan(None, (), None)
    takes = tuple(BOOLEAN if index % 2 == 0 else result_type for index in range(len(arguments) - 1))
    return Plan(result_type, (*takes, result_type), _choose)


def _choose(cells: Sequence[ExpressionCells]) -> ExpressionCells:
    *pairs, otherwise = cells
    rows = len(otherwise.values)
    open_rows = np.ones(rows, np.bool_)
    failed, chosen = None, otherwise.values
    picks: list[tuple[Values, Values]] = []
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        failed = either(failed, only(condition.failed, open_rows))
        taken = true_rows(condition.values) & open_rows
        failed = either(failed, only(value.failed, taken))
        open_rows = open_rows & ~taken
        picks.append((pa.array(taken), value.values))
    for taken_rows, values in reversed(picks):
        chosen = pc.if_else(taken_rows, values, chosen)
    return ExpressionCells(chosen, either(failed, only(otherwise.failed, open_rows)))


def _if(arguments: Sequence[Argument]) -> Plan:
    missing = () if len(arguments) > 2 else (Argument(None, True),)
    plan = _case((*arguments, *missing))
    if not missing or plan.type is None:
        return plan
    arrow_type: Values = to_arrow_type(plan.type)

    def run(cells: Sequence[ExpressionCells]) -> ExpressionCells:
        return _choose((*cells, ExpressionCells(pa.nulls(len(cells[0].values), arrow_type))))

    return Plan(plan.type, plan.takes[:2], run)


def _coalesce(arguments: Sequence[Argument]) -> Plan:
    result_type = common_type("COALESCE", arguments)
    return Plan(result_type, (result_type,) * len(arguments) if result_type else (), _first_there)


def _first_there(cells: Sequence[ExpressionCells]) -> ExpressionCells:
    failed, missing = cells[0].failed, np.asarray(cells[0].values.is_null())
    for cell in cells[1:]:
        if failed is not None:
            missing = missing & ~failed
        failed = either(failed, only(cell.failed, missing))
        missing = missing & np.asarray(cell.values.is_null())
    return ExpressionCells(pc.coalesce(*(cell.values for cell in cells)), failed)


def _nullif(arguments: Sequence[Argument]) -> Plan:
    compared = comparable("NULLIF", arguments)
    if arguments[0].type is None:
        return Plan(None, (), None)
    arrow_type: Values = to_arrow_type(compared)

    def null_if(left: Values, right: Values) -> Values:
        same: Values = pc.fill_null(equal(left, right), False)
        nothing: Values = pa.scalar(None, arrow_type)
        return pc.if_else(same, nothing, left)

    return Plan(compared, (compared, compared), strict(null_if, arrow_type))


def _extreme(name: str, *, largest: bool) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        result_type = common_type(name, arguments)
        if result_type is None:
            return Plan(None, (), None)
        comparable(name, arguments)
        return Plan(
            result_type, (result_type,) * len(arguments), _of_all(result_type, largest=largest)
        )

    return Function(2, None, plan)


def _of_all(data_type: DataType, *, largest: bool) -> Kernel:
    """Return a kernel for the largest or smallest argument of each row; NULL is ignored."""

    def of_all(*values: Values) -> Values:
        best: Values = values[0]
        for value in values[1:]:
            compare = greater if largest else less
            better: Values = pc.fill_null(compare(value, best), False)
            taken: Values = pc.or_(better, pc.is_null(best))
            best = pc.if_else(taken, value, best)
        return best

    return strict(of_all, to_arrow_type(data_type))


def _nvl2(arguments: Sequence[Argument]) -> Plan:
    """Plan NVL2: the second argument if the first is not NULL, else the third."""
    plan = _case((Argument(BOOLEAN), *arguments[1:]))
    if plan.type is None:
        return plan

    def run(cells: Sequence[ExpressionCells]) -> ExpressionCells:
        known: Values = cells[0].values.is_valid()
        return _choose((ExpressionCells(known, cells[0].failed), *cells[1:]))

    own = arguments[0].type or BOOLEAN
    return Plan(plan.type, (own.as_nullable(), *plan.takes[1:]), run)


CHOICE_FUNCTIONS: Mapping[str, Function] = {
    "case": Function(3, None, _case),
    "if": Function(2, 3, _if),
    "iff": Function(2, 3, _if),
    "coalesce": Function(1, None, _coalesce),
    "ifnull": Function(2, 2, _coalesce),
    "nvl": Function(2, 2, _coalesce),
    "nvl2": Function(3, 3, _nvl2),
    "nullif": Function(2, 2, _nullif),
    "greatest": _extreme("GREATEST", largest=True),
    "least": _extreme("LEAST", largest=False),
}
