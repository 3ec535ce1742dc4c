"""Equality of a PostgreSQL value and a cell of a table, each written in its own canonical way.

Database values are as the corpus keeps them (PostgreSQL's own text, ISO dates and times, hex);
cells are as the JSON lines of a reader show them, with the Paimon type to say what they mean.
"""

import base64
import ipaddress
import json
import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal, getcontext
from typing import Any

getcontext().prec = 400

DAY = 86_400_000_000  # microseconds
MONTH = Decimal("30.4375") * DAY  # what the connector takes a month of an interval for
INFINITIES = {
    "date": {"infinity": -2147472692, "-infinity": -2147472691},
    "timestamp": {"infinity": 9223372036825200000, "-infinity": -9223372036832400000},
}


def same(database_type: str, wanted: Any, paimon_type: Any, got: Any) -> bool:
    """Whether a cell holds what the database holds.

    Raises ValueError or TypeError when the cell cannot even be read as such a value.
    """
    if wanted is None or got is None:
        return wanted is None and got is None
    if database_type.endswith("[]"):
        element = paimon_type["element"] if isinstance(paimon_type, Mapping) else "STRING"
        values = json.loads(got) if isinstance(got, str) else got
        return len(wanted) == len(values) and all(
            same(database_type[:-2], w, element, g) for w, g in zip(wanted, values, strict=True)
        )
    family = re.sub(r"\(.*?\)", "", database_type)
    compare = FAMILIES.get(family)
    return compare(wanted, root(paimon_type), got) if compare else wanted == got


def root(paimon_type: Any) -> str:
    """``DECIMAL(5, 2) NOT NULL`` -> ``DECIMAL``, ``TIMESTAMP(6) WITH LOCAL TIME ZONE`` -> LTZ."""
    if isinstance(paimon_type, Mapping):
        return str(paimon_type["type"]).split()[0]
    text = str(paimon_type)
    if "LOCAL TIME ZONE" in text or text.startswith("TIMESTAMP_LTZ"):
        return "TIMESTAMP_LTZ"
    return re.split(r"[ (]", text)[0]


def days(text: str) -> int:
    """Days since 1970 of an ISO date of any year, proleptic Gregorian."""
    match = re.fullmatch(r"([+-]?\d{4,})-(\d\d)-(\d\d)", text)
    if not match:
        raise ValueError(f"not a date: {text}")
    year, month, day = (int(group) for group in match.groups())
    year -= month <= 2
    era, of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + day_of_year - 719468


def micros_of_day(text: str) -> int:
    """Microseconds of an ISO time of day."""
    match = re.fullmatch(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", text)
    if not match:
        raise ValueError(f"not a time of day: {text}")
    hour, minute, second = (int(group or 0) for group in match.groups()[:3])
    nanos = int((match[4] or "").ljust(9, "0"))
    if nanos % 1000:
        raise ValueError(f"finer than a microsecond: {text}")
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + nanos // 1000


def micros(text: str) -> int:
    """Microseconds since 1970 of an ISO timestamp, with or without Z."""
    date, _, time = text.removesuffix("Z").partition("T")
    return days(date) * DAY + micros_of_day(time)


def interval_micros(text: str) -> int:
    """An ISO interval as the connector counts it: microseconds, held within 64 bits."""
    match = re.fullmatch(
        r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?"
        r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?[\d.]+)S)?)?",
        text,
    )
    if not match:
        raise ValueError(f"not an interval: {text}")
    year, month, day, hour, minute, second = (Decimal(group or 0) for group in match.groups())
    total = (year * 12 + month) * MONTH + day * DAY
    total += ((hour * 60 + minute) * 60 + second) * 1_000_000
    return max(min(int(total), 2**63 - 1), -(2**63))


def _integer(wanted: Any, _: str, got: Any) -> bool:
    return isinstance(got, int) and not isinstance(got, bool) and wanted == got


def _padded(wanted: Any, _: str, got: Any) -> bool:
    """Blanks at the end mean nothing in PostgreSQL's char(n); its own text leaves them out."""
    return bool(wanted.rstrip(" ") == got.rstrip(" "))


def _real(wanted: Any, _: str, got: Any) -> bool:
    left, right = (struct.pack("<f", float(value)) for value in (wanted, got))
    return left == right or (math.isnan(float(wanted)) and math.isnan(float(got)))


def _double(wanted: Any, _: str, got: Any) -> bool:
    left, right = float(wanted), float(got)
    return left == right or (math.isnan(left) and math.isnan(right))


def _decimal(wanted: Any, _: str, got: Any) -> bool:
    if not isinstance(got, str):
        return False
    value = _variable_scale(got) if got.startswith("{") else Decimal(got)
    return Decimal(re.sub(r"[$,]", "", wanted)) == value


def _variable_scale(text: str) -> Decimal:
    """A decimal that was kept as it came: its scale and the bytes of its unscaled number."""
    document = json.loads(text)
    unscaled = int.from_bytes(base64.b64decode(document["value"]), "big", signed=True)
    return Decimal(unscaled).scaleb(-document["scale"])


def _date(wanted: Any, kind: str, got: Any) -> bool:
    expected = INFINITIES["date"].get(wanted)
    expected = days(wanted) if expected is None else expected
    return expected == (days(got) if kind == "DATE" else got)


def _time(wanted: Any, kind: str, got: Any) -> bool:
    return micros_of_day(wanted) == (micros_of_day(got) if kind == "TIME" else got)


def _time_with_zone(wanted: Any, _: str, got: Any) -> bool:
    match = re.fullmatch(r"([\d:.]+)([+-]\d\d)(?::(\d\d))?", wanted)
    if not match:
        raise ValueError(f"not a time with zone: {wanted}")
    shift = int(match[2]) * 60 + int(match[3] or 0) * (-1 if match[2][0] == "-" else 1)
    utc = (micros_of_day(match[1]) - shift * 60_000_000) % DAY
    return utc == micros_of_day(got.removesuffix("Z"))


def _timestamp(wanted: Any, kind: str, got: Any) -> bool:
    expected = INFINITIES["timestamp"].get(wanted)
    expected = micros(wanted) if expected is None else expected
    return expected == (micros(got) if kind.startswith("TIMESTAMP") else got)


def _interval(wanted: Any, _: str, got: Any) -> bool:
    return bool(interval_micros(wanted) == got)


def _bits(wanted: Any, kind: str, got: Any) -> bool:
    if kind == "BOOLEAN":
        return bool((wanted == "1") is got)
    return int(wanted or "0", 2) == int.from_bytes(bytes.fromhex(got), "big")


def _json(wanted: Any, _: str, got: Any) -> bool:
    value = json.loads(wanted, parse_float=Decimal) if isinstance(wanted, str) else wanted
    return bool(value == json.loads(got, parse_float=Decimal))


def _network(wanted: Any, _: str, got: Any) -> bool:
    return ipaddress.ip_interface(wanted) == ipaddress.ip_interface(got)


def _point(wanted: Any, _: str, got: Any) -> bool:
    value = json.loads(got) if isinstance(got, str) else got
    x, y = (float(part) for part in wanted.strip("()").split(","))
    return (x, y) == (float(value["x"]), float(value["y"]))


Compare = Callable[[Any, str, Any], bool]
FAMILIES: Mapping[str, Compare] = {
    "smallint": _integer,
    "integer": _integer,
    "bigint": _integer,
    "oid": _integer,
    "character": _padded,
    "real": _real,
    "double precision": _double,
    "numeric": _decimal,
    "money": _decimal,
    "date": _date,
    "time without time zone": _time,
    "time with time zone": _time_with_zone,
    "timestamp without time zone": _timestamp,
    "timestamp with time zone": _timestamp,
    "interval": _interval,
    "bit": _bits,
    "bit varying": _bits,
    "json": _json,
    "jsonb": _json,
    "hstore": _json,
    "inet": _network,
    "point": _point,
}
