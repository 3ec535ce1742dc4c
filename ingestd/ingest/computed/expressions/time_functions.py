"""Functions on dates and times in SQL expressions; TIMESTAMP_LTZ values are interpreted in UTC."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.cells import strict
from ingestd.ingest.computed.expressions.function import (
    BIGINT,
    DATE,
    INT,
    TEXT,
    TIME_ROOTS,
    Argument,
    Function,
    Plan,
    constant_text,
    require,
)
from ingestd.ingest.computed.time_parts import (
    PER_SECOND,
    check_pattern,
    floor_times,
    format_times,
    part_of,
    points_in_time,
)
from ingestd.paimon.spec.arrow import Values, to_arrow_type
from ingestd.paimon.spec.data_types import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataType

_PARTS: Mapping[str, str] = {
    "year": "year", "quarter": "quarter", "month": "month", "week": "iso_week", "day": "day",
    "dayofmonth": "day", "dayofyear": "day_of_year", "hour": "hour", "minute": "minute",
    "second": "second",
}  # fmt: skip
_UNITS = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})
_OF_DAYS = frozenset({"year", "quarter", "month", "week", "day"})
_DAY: Values = pa.scalar(86_400, pa.int64())
_EPOCHS: Mapping[str, tuple[str, int]] = {
    "timestamp_seconds": ("s", 0), "timestamp_millis": ("ms", 3), "timestamp_micros": ("us", 6),
}  # fmt: skip


def _time_of(name: str, argument: Argument) -> DataType | None:
    require(name, [argument], TIME_ROOTS)
    return None if argument.type is None else argument.type.as_nullable()


def _nothing() -> Plan:
    return Plan(None, (), None)


def _part(name: str) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        data_type = _time_of(name, arguments[0])
        if data_type is None:
            return _nothing()
        source = data_type

        def part(values: Values) -> Values:
            return part_of(_PARTS[name], points_in_time(values, source))

        return Plan(INT, (source,), strict(part, pa.int32()))

    return Function(1, 1, plan)


def _date_format(arguments: Sequence[Argument]) -> Plan:
    pattern = constant_text("the pattern of date_format", arguments[1])
    check_pattern(pattern)
    data_type = _time_of("date_format", arguments[0])
    if data_type is None:
        return _nothing()
    source = data_type

    def formatted(values: Values, _: Values) -> Values:
        return format_times(points_in_time(values, source), pattern)

    return Plan(TEXT, (source, TEXT), strict(formatted, pa.string()))


def _date_trunc(arguments: Sequence[Argument]) -> Plan:
    unit = constant_text("the unit of date_trunc", arguments[0]).lower()
    if unit not in _UNITS:
        raise ConfigError(f"date_trunc: unknown unit '{unit}', only {', '.join(sorted(_UNITS))}")
    data_type = _time_of("date_trunc", arguments[1])
    if data_type is None:
        return _nothing()
    arrow_type: Values = to_arrow_type(data_type)
    if data_type.root == "DATE" and unit not in _OF_DAYS:
        return Plan(data_type, (TEXT, data_type), strict(lambda _, values: values, arrow_type))

    def cut(_: Values, values: Values) -> Values:
        if data_type.root == "DATE":
            floor = floor_times(points_in_time(values, data_type), unit).cast(pa.int64())
            return pc.divide(floor, _DAY).cast(pa.int32()).cast(arrow_type)
        return floor_times(values, unit)

    return Plan(data_type, (TEXT, data_type), strict(cut, arrow_type))


def _shifted(name: str, sign: int) -> Function:
    """Return a function that adds (`sign` 1) or subtracts (-1) a number of days."""

    def plan(arguments: Sequence[Argument]) -> Plan:
        _time_of(name, arguments[0])
        require(name, arguments[1:], INTEGER_ROOTS)

        def shift(days: Values, by: Values) -> Values:
            steps = pc.multiply_checked(by, pa.scalar(sign, pa.int32()))
            return pc.add_checked(days.cast(pa.int32()), steps).cast(pa.date32())

        return Plan(DATE, (DATE, INT), strict(shift, pa.date32()))

    return Function(2, 2, plan)


def _datediff(arguments: Sequence[Argument]) -> Plan:
    """Plan DATEDIFF: the number of days from the second date to the first date."""
    for argument in arguments:
        _time_of("datediff", argument)

    def difference(until: Values, since: Values) -> Values:
        return pc.subtract_checked(until.cast(pa.int32()), since.cast(pa.int32()))

    return Plan(INT, (DATE, DATE), strict(difference, pa.int32()))


def _from_epoch(name: str) -> Function:
    unit, precision = _EPOCHS[name]
    counted: Values = pa.timestamp
    data_type = DataType("TIMESTAMP_LTZ", precision=precision)

    def plan(arguments: Sequence[Argument]) -> Plan:
        require(name, arguments, INTEGER_ROOTS)
        arrow_type: Values = to_arrow_type(data_type)

        def moment(numbers: Values) -> Values:
            return numbers.cast(counted(unit, "UTC")).cast(arrow_type)

        return Plan(data_type, (BIGINT,), strict(moment, arrow_type))

    return Function(1, 1, plan)


def _unix_timestamp(arguments: Sequence[Argument]) -> Plan:
    """Plan UNIX_TIMESTAMP: the whole seconds since the epoch, rounded down."""
    require("unix_timestamp", arguments, TIMESTAMP_ROOTS)
    data_type = arguments[0].type
    if data_type is None:
        return _nothing()
    source = data_type.as_nullable()

    def seconds(values: Values) -> Values:
        per_second = PER_SECOND[values.type.unit]
        ticks = np.asarray(pc.fill_null(values.cast(pa.int64()), 0))
        return pa.array(ticks // per_second, pa.int64(), mask=np.asarray(values.is_null()))

    return Plan(BIGINT, (source,), strict(seconds, pa.int64()))


TIME_FUNCTIONS: Mapping[str, Function] = {
    **{name: _part(name) for name in _PARTS},
    **{name: _from_epoch(name) for name in _EPOCHS},
    "date_format": Function(2, 2, _date_format),
    "date_trunc": Function(2, 2, _date_trunc),
    "date_add": _shifted("date_add", 1),
    "date_sub": _shifted("date_sub", -1),
    "datediff": Function(2, 2, _datediff),
    "unix_timestamp": Function(1, 1, _unix_timestamp),
}
