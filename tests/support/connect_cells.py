"""What is left of a database's values in mode json-connect, which sends some of them cut short."""

import re
from typing import Any

from tests.support import canonical
from tests.support.state import Same

_DAY = 24


def sent_by_connect(same: Same) -> Same:
    """The comparison, of what the mode can say of the database's value.

    Times have milliseconds, those of MariaDB that are no times of a day are null, intervals and
    binary values of PostgreSQL text.
    """

    def compare(database_type: str, wanted: Any, paimon_type: Any, got: Any) -> bool:
        if None in (wanted, got) or not isinstance(wanted, str):
            return same(database_type, _no_time(database_type, wanted), paimon_type, got)
        if database_type == "interval":
            return canonical.interval_micros(wanted) == canonical.interval_micros(got)
        if database_type == "time without time zone":
            return bool(canonical.micros_of_day(_cut(database_type, wanted)) == got * 1000)
        if database_type == "bytea":
            return bool(wanted == got)
        return same(database_type, _cut(database_type, wanted), paimon_type, got)

    return compare


def _no_time(database_type: str, wanted: Any) -> Any:
    match = re.match(r"(-?)(\d+):", wanted) if isinstance(wanted, str) else None
    beyond = match and database_type.startswith("time(") and (match[1] or int(match[2]) >= _DAY)
    return None if beyond else wanted


def _cut(database_type: str, wanted: str) -> str:
    if re.match(r"(date)?time", database_type) and "with time zone" not in database_type:
        return re.sub(r"(\.\d{3})\d+", r"\1", wanted)
    return wanted
