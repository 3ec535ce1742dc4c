"""The SQL of canonical texts in MySQL and MariaDB, for the types that Debezium sends."""

from collections.abc import Callable, Mapping

from ingestd.compare.canonical import Form
from ingestd.compare.column_pairs import DatabaseColumn
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
DATETIMES = frozenset({"datetime", "timestamp"})
_PRINTED = frozenset({"enum", "set", "uuid", "inet4", "inet6"})
_MOST_DECIMALS = 30
"""The largest scale of a decimal of MySQL."""
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def text_sql(name: str, column: DatabaseColumn, t: DataType) -> tuple[str, Form] | None:
    """Return the SQL of a column's canonical text, and its form in the lake.

    `name` is the quoted name of the column, `t` its type in the lake. Returns None if the column
    cannot be compared.
    """
    if column.kind in INTEGERS:
        return _integer(name, column, t)
    convert = _BY_KIND.get(column.kind)
    text = None if convert is None else convert(name, column, t)
    form = Form.COMMAS if column.kind == "enum" else Form.AS_IS
    return None if text is None else (text, form)


def is_unsigned(column: DatabaseColumn) -> bool:
    """Return whether a numeric column of MySQL is declared UNSIGNED."""
    return " unsigned" in column.type_text


def _integer(name: str, column: DatabaseColumn, t: DataType) -> tuple[str, Form] | None:
    # A column with ZEROFILL is printed with zeros unless it is cast.
    number = f"cast({name} AS {'unsigned' if is_unsigned(column) else 'signed'})"
    if t.root == "BOOLEAN":
        return f"elt(1 + ({name} <> 0), 'false', 'true')", Form.AS_IS
    if t.root == "DECIMAL":
        text = _decimal(number, column, t)
        return None if text is None else (text, Form.AS_IS)
    if t.root in INTEGER_ROOTS or t.root in CHARACTER_ROOTS:
        # Debezium sends BIGINT UNSIGNED as the signed number with the same bits.
        wraps = column.kind == "bigint" and is_unsigned(column) and t.root == "BIGINT"
        return f"cast({number} AS char)", Form.UNSIGNED if wraps else Form.AS_IS
    return None


def _text(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    return f"convert({name} USING utf8mb4)" if t.root in CHARACTER_ROOTS else None


def _printed(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    if t.root not in CHARACTER_ROOTS:
        return None
    return f"convert(cast({name} AS char) USING utf8mb4)"


def _bytes(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    return f"lower(hex({name}))" if t.root in BINARY_ROOTS else None


def _bits(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    length = int(column.type_text.removeprefix("bit(").removesuffix(")"))
    if t.root == "BOOLEAN":
        return f"elt(1 + {name}, 'false', 'true')" if length == 1 else None
    digits = (length + 7) // 8 * 2
    return f"lower(lpad(hex({name} + 0), {digits}, '0'))" if t.root in BINARY_ROOTS else None


def _decimal(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    if t.root in CHARACTER_ROOTS:
        digits = column.type_text.partition(")")[0].partition(",")[2]
        return f"cast(cast({name} AS decimal(65, {digits or 0})) AS char)"
    if t.root == "DOUBLE":
        return _double(name, column, t)
    scale = -1 if t.root != "DECIMAL" or t.scale is None else t.scale
    fits = 0 <= scale <= _MOST_DECIMALS
    return f"cast(cast({name} AS decimal(65, {scale})) AS char)" if fits else None


def _year(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    fits = t.root in INTEGER_ROOTS or t.root in CHARACTER_ROOTS
    return f"cast({name} + 0 AS char)" if fits else None


def _float(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    return _bits_of(name, 23, 126, 8) if t.root == "FLOAT" else _double(name, column, t)


def _double(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    return _bits_of(name, 52, 1022, 16) if t.root == "DOUBLE" else None


def _bits_of(name: str, fraction: int, bias: int, digits: int) -> str:
    """Return the SQL of the bits of a number in IEEE 754, by exact multiplications.

    `fraction` is the number of bits of the fraction, `bias` the negated exponent of the smallest
    normal number. The logarithm may be rounded to a neighbour, so that the scaled number `scaled`
    is between 0.5 and 4.
    """
    size = f"abs({name} + 0e0)"
    exponent = f"floor(log2({size}))"
    scaled = f"({size} * pow(2, -{exponent}))"
    one, half = 2**fraction, 2 ** ((bias + fraction) // 2)
    rest = 2 ** (bias + fraction - (bias + fraction) // 2)

    def bits(shift: int, factor: int) -> str:
        return (
            f"cast({exponent} + {bias + shift} AS unsigned) * {one}"
            f" + cast({scaled} * {factor} AS unsigned)"
        )

    normal = (
        f"CASE WHEN {scaled} < 1 THEN {bits(-1, 2 * one)}"
        f" WHEN {scaled} >= 2 THEN {bits(1, one // 2)} ELSE {bits(0, one)} END"
    )
    small = f"cast({size} * {half}e0 * {rest}e0 AS unsigned)"
    value = (
        f"CASE WHEN {name} = 0 THEN 0 WHEN {size} < pow(2, -{bias}) THEN {small} ELSE {normal} END"
    )
    sign = f"if({name} < 0, {2 ** (4 * digits - 1)}, 0)"
    number = f"hex(cast({value} + {sign} AS unsigned))"
    return f"lower(lpad({number}, if({name} IS NULL, NULL, {digits}), '0'))"


def _date(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    days = f"datediff({name}, '1970-01-01')"
    is_days = t.root == "DATE" or t.root in INTEGER_ROOTS
    return _without_zero(name, column, f"cast({days} AS char)", "0") if is_days else None


def _datetime(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    micros = f"timestampdiff(MICROSECOND, '1970-01-01', {name})"
    units = _units(column, t)
    if units is None or (column.kind == "datetime" and t.root == "TIMESTAMP_LTZ"):
        return None
    if units > _UNITS["us"]:
        number = f"{micros} * {units // _UNITS['us']}"
    else:
        number = f"floor({micros} / {_UNITS['us'] // units})"
    return _without_zero(name, column, f"cast({number} AS char)", "0")


def _units(column: DatabaseColumn, t: DataType) -> int | None:
    """Return the number of units per second in which the lake stores datetimes of a column.

    Returns None if the type in the lake is not a number of such units.
    """
    if t.root in TIMESTAMP_ROOTS:
        return _UNITS[str(getattr(to_arrow_type(t), "unit", "us"))]
    if t.root == "BIGINT" and column.kind == "datetime":  # a message without a schema
        return _UNITS["us"] if _precision(column) > 3 else _UNITS["ms"]
    return None


def _precision(column: DatabaseColumn) -> int:
    digits = column.type_text.partition("(")[2].partition(")")[0]
    return int(digits or 0)


def _without_zero(name: str, column: DatabaseColumn, text: str, epoch: str) -> str:
    """Return the SQL of a date's text, replaced as by Debezium if the day or the month is 0.

    Debezium sends null for such a date, or the epoch if the column is NOT NULL.
    """
    zero = "NULL" if column.is_nullable else f"'{epoch}'"
    return f"CASE WHEN month({name}) = 0 OR day({name}) = 0 THEN {zero} ELSE {text} END"


def _time(name: str, column: DatabaseColumn, t: DataType) -> str | None:
    """Return the SQL of a time, which may be negative.

    Its unit is microseconds if the type in the lake is BIGINT, and milliseconds if it is TIME. For
    other types the result is None.
    """
    if t.root not in ("TIME", "BIGINT"):
        return None
    seconds = f"hour({name}) * 3600 + minute({name}) * 60 + second({name})"
    micros = f"(({seconds}) * 1000000 + microsecond({name}))"
    sign = f"if({name} < cast('00:00:00' AS time), -1, 1)"
    divisor = 1 if t.root == "BIGINT" else 1_000
    return f"cast(floor({micros} * {sign} / {divisor}) AS char)"


_BY_KIND: Mapping[str, Callable[[str, DatabaseColumn, DataType], str | None]] = {
    **dict.fromkeys(TEXTS, _text),
    **dict.fromkeys(_PRINTED, _printed),
    **dict.fromkeys(BYTES, _bytes),
    **dict.fromkeys(DATETIMES, _datetime),
    "bit": _bits,
    "decimal": _decimal,
    "year": _year,
    "float": _float,
    "double": _double,
    "date": _date,
    "time": _time,
}
