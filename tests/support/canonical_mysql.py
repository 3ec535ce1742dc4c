"""Equality of a MySQL or MariaDB value and a cell of a table, each in its own canonical way.

As ``canonical`` for PostgreSQL: database values are as the corpus keeps them.
"""

import base64
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from tests.support import canonical

_SIGNED_64 = 2**63


def same(database_type: str, wanted: Any, paimon_type: Any, got: Any) -> bool:
    """Whether a cell holds what the database holds.

    Raises ValueError or TypeError when the cell cannot even be read as such a value.
    """
    if wanted is None or got is None:
        return wanted is None and got is None
    family = re.split(r"[ (]", database_type)[0]
    if family == "bit" and database_type != "bit(1)":
        family = "bits"
    compare = _FAMILIES.get(family)
    return compare(wanted, canonical.root(paimon_type), got) if compare else wanted == got


def same_as_sent(database_type: str, wanted: Any, paimon_type: Any, got: Any) -> bool:
    """As `same` for messages without a schema, which do not tell that bytes are bits.

    A declared BYTES keeps the order on the wire, the lowest byte first.
    """
    if re.match(r"bit\((?!1\))", database_type) and None not in (wanted, got):
        return bool(wanted == int.from_bytes(bytes.fromhex(got), "little"))
    return same(database_type, wanted, paimon_type, got)


def _integer(wanted: Any, _: str, got: Any) -> bool:
    """By default the connector sends what 64 bits with a sign make of BIGINT UNSIGNED."""
    number = int(Decimal(got)) if isinstance(got, str) else got
    return bool(number == wanted or number == wanted - 2 * _SIGNED_64 < 0 <= wanted - _SIGNED_64)


def _bit(wanted: Any, _: str, got: Any) -> bool:
    return got is bool(wanted)


def _bits(wanted: Any, _: str, got: Any) -> bool:
    return bool(wanted == int.from_bytes(bytes.fromhex(got), "big"))


def _float(wanted: Any, kind: str, got: Any) -> bool:
    return canonical.FAMILIES["real" if kind == "FLOAT" else "double precision"](wanted, kind, got)


def _decimal(wanted: Any, kind: str, got: Any) -> bool:
    return canonical.FAMILIES["numeric"](wanted, kind, got)


def _date(wanted: Any, kind: str, got: Any) -> bool:
    return canonical.FAMILIES["date"](wanted, kind, got)


def _time(wanted: Any, kind: str, got: Any) -> bool:
    """Microseconds as a number, for there are times below zero and beyond a day."""
    match = re.fullmatch(r"(-?)(\d+):(\d\d):([\d.]+)", wanted)
    if not match:
        raise ValueError(f"not a time: {wanted}")
    micros = (int(match[2]) * 60 + int(match[3])) * 60_000_000 + int(Decimal(match[4]) * 10**6)
    signed = -micros if match[1] else micros
    return bool(signed == (canonical.micros_of_day(got) if kind == "TIME" else got))


def _timestamp(wanted: Any, kind: str, got: Any) -> bool:
    return canonical.FAMILIES["timestamp without time zone"](wanted, kind, got)


def _binary(wanted: Any, kind: str, got: Any) -> bool:
    data = bytes.fromhex(got) if kind in {"BYTES", "VARBINARY"} else base64.b64decode(got)
    return bool(data == bytes.fromhex(wanted))


def _enum(wanted: Any, _: str, got: Any) -> bool:
    """The connector writes a comma within an allowed value with a backslash."""
    return bool(wanted == got.replace("\\,", ","))


_FAMILIES: Mapping[str, Callable[[Any, str, Any], bool]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year"), _integer),
    **dict.fromkeys(("float", "double"), _float),
    **dict.fromkeys(("binary", "varbinary", "blob"), _binary),
    **dict.fromkeys(("timestamp", "datetime"), _timestamp),
    "bit": _bit,
    "bits": _bits,
    "decimal": _decimal,
    "date": _date,
    "time": _time,
    "enum": _enum,
}
