"""Sound messages made odd: in their bytes, and in what they mean.

Every choice is drawn from the `Random` that is given, so that the caller decides what is
drawn: hypothesis, a coverage-guided fuzzer, or a seed.
"""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

_BYTES = b'\0\1\x7f\x80\xc0\xed\xfe\xff"\\{}[]:,0-.eEtfnu \t\n'
_PIECES = (
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xfe\xff\xff\xff\x0f",
    b"\x80" * 12,
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\\u0000",
    b"\xef\xbb\xbf",
    b"[" * 1500,
    b'{"a":' * 1500,
    b"null",
)
_NUMBERS = (
    "0", "-0", "-0.0", "1", "-1", "127", "128", "255", "32768", "65536", "2147483648",
    "-2147483649", "4294967296", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "18446744073709551616", "1e5", "1E-5", "1.0", "0.1", "1e308", "1e309",
    "-1e400", "1e-400", "1e999999", "1e-999999", "1e99999999999999999999", "0e999999999",
    "123456789012345678901234567890123456789", "1" * 400, "0." + "1" * 400, "9" * 5000,
    "NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1", "1e", "0x10",
)  # fmt: skip
_TEXTS = (
    "", " ", "a", "id", "null", "true", "\0", "é", "\U0001f600", "\u2028", "\ud800", "NaN", "-Inf",
    "1", "-1", "1.5", "1e5", "1e999999", "1e-999999", "9" * 5000, "0x1f", "AQ==", "AQ=", "=",
    "AQID",
    "0000-00-00", "0000-00-00 00:00:00", "2024-02-30", "9999-12-31", "99999-12-31", "-0001-01-01",
    "2024-01-01T00:00:00Z", "2024-01-01 00:00:00.123456789", "24:00:00", "-838:59:59", "12:34",
    "2024-01-01T00:00:00+99:99", "P1Y2M3DT4H5M6S", "__debezium_unavailable_value",
    "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "INSERT", "UPDATE", "DELETE", "c", "u", "d", "r",
    "t", "m", "I", "U", "D", "bin.000001", "bin.99999999999999999999", "int", "bigint(20) unsigned",
    "decimal(65,30)", "decimal(999999999,-5)", "decimal(0,0)", "enum('a','b')", "set(", "bit(64)",
    "varchar(4294967296)", "org.apache.kafka.connect.data.Decimal", "io.debezium.time.MicroTime",
    "io.debezium.data.VariableScaleDecimal", "io.debezium.data.Bits", "struct", "array", "map",
    "bytes", "int64", "float", "a.b", "a`b", "x" * 3000,
)  # fmt: skip


class Members(list[tuple[str, Any]]):
    """The members of a JSON object in their order; names may be there twice."""


class Literal(str):
    """JSON text that is put in as it is."""

    __slots__ = ()


def odd_bytes(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The bytes with something changed in one place."""
    start = random.randrange(len(data) + 1)
    end = min(len(data), start + random.choice((0, 1, 1, 1, 2, 4, 8, 40)))
    how = random.randrange(8)
    if how == 0:
        return data[:start]
    if how == 1:
        return data[:start] + data[end:]
    if how == 2:
        return data[:end] + data[start:]
    if how == 3:
        return data[:start] + random.choice(_PIECES) + data[end:]
    if how == 4:
        other = random.choice(others or (data,))
        cut = random.randrange(len(other) + 1)
        return data[:start] + other[cut : cut + random.choice((1, 4, 16, 400))] + data[end:]
    if how == 5:
        return data[:start] + bytes([random.choice(_BYTES)]) + data[start:]
    fresh = random.choice(_BYTES) if how == 6 else random.randrange(256)
    return data[:start] + bytes([fresh]) + data[start + 1 :]


def odd_document(random: Random, text: bytes, others: Sequence[bytes]) -> bytes:
    """The JSON text with one value, name or member changed; odd bytes if it is not JSON."""
    document = _parsed(text)
    places = [] if document is None else list(_places(document))
    if not places:
        return odd_bytes(random, text, others)
    holder, index = random.choice(places)
    change = random.choice(_CHANGES)
    change(random, holder, index, others)
    return _dumped(document).encode("utf-8", "surrogatepass")


def replaced(text: bytes, number: int, value: Any) -> bytes | None:
    """The JSON text with another value in one of its places, counted round; None if it has none."""
    document = _parsed(text)
    places = [] if document is None else list(_places(document))
    if not places:
        return None
    holder, index = places[number % len(places)]
    _put(holder, index, value)
    return _dumped(document).encode("utf-8", "surrogatepass")


def _value(random: Random, others: Sequence[bytes]) -> Any:
    how = random.randrange(9)
    if how < 2:
        return Literal(random.choice(_NUMBERS))
    if how < 5:
        return random.choice(_TEXTS)
    if how == 5:
        return random.choice((None, True, False, [], Members(), Literal("")))
    if how == 6:
        depth = random.choice((2, 30, 300, 3000))
        opened, closed = random.choice((("[", "]"), ('{"a":', "}")))
        return Literal(opened * depth + "1" + closed * depth)
    if how == 7:
        donor = _parsed(random.choice(others)) if others else None
        found = [] if donor is None else list(_places(donor))
        return _at(*random.choice(found)) if found else None
    return [_value(random, ()) for _ in range(random.randrange(3))]


def _replace(random: Random, holder: Any, index: int, others: Sequence[bytes]) -> None:
    _put(holder, index, _value(random, others))


def _remove(random: Random, holder: Any, index: int, others: Sequence[bytes]) -> None:
    del holder[index]


def _repeat(random: Random, holder: Any, index: int, others: Sequence[bytes]) -> None:
    holder.insert(random.randrange(len(holder) + 1), holder[index])


def _add(random: Random, holder: Any, index: int, others: Sequence[bytes]) -> None:
    value = _value(random, others)
    name = random.choice(_TEXTS)
    holder.insert(index, (name, value) if isinstance(holder, Members) else value)


def _rename(random: Random, holder: Any, index: int, others: Sequence[bytes]) -> None:
    if isinstance(holder, Members):
        names = [name for name, _ in holder]
        holder[index] = (random.choice((*names, *_TEXTS)), holder[index][1])


def _swap(random: Random, holder: Any, index: int, others: Sequence[bytes]) -> None:
    other = random.randrange(len(holder))
    mine, theirs = _at(holder, index), _at(holder, other)
    _put(holder, index, theirs)
    _put(holder, other, mine)


def _wrap(random: Random, holder: Any, index: int, others: Sequence[bytes]) -> None:
    inner = _at(holder, index)
    _put(holder, index, random.choice(([inner], Members([("a", inner)]), _dumped(inner))))


_CHANGES: Sequence[Callable[[Random, Any, int, Sequence[bytes]], None]] = (
    _replace, _replace, _replace, _replace, _remove, _repeat, _add, _rename, _swap, _wrap,
)  # fmt: skip


def _parsed(text: bytes) -> Any:
    try:
        found = json.loads(text, object_pairs_hook=Members, parse_float=Literal, parse_int=Literal)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _places(document: Any) -> Any:
    """Holders and indices of all values."""
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        for index in range(len(holder)):
            yield holder, index
            inner = _at(holder, index)
            if isinstance(inner, list):
                waiting.append(inner)


def _at(holder: Any, index: int) -> Any:
    return holder[index][1] if isinstance(holder, Members) else holder[index]


def _put(holder: Any, index: int, value: Any) -> None:
    holder[index] = (holder[index][0], value) if isinstance(holder, Members) else value


def _dumped(value: Any) -> str:
    if isinstance(value, Literal):
        return str(value)
    if isinstance(value, Members):
        return "{" + ",".join(f"{json.dumps(n)}:{_dumped(v)}" for n, v in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dumped, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
