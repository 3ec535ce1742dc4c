"""Columns of old types with values, and the types that they may be changed to.

Values are as the judge takes them: texts for decimals, times and bytes (hex).
"""

from collections.abc import Mapping, Sequence
from typing import Any

INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
NUMBERS = (*INTEGERS, "FLOAT", "DOUBLE", "DECIMAL(7, 2)", "DECIMAL(38, 10)")
TEXTS = ("STRING", "VARCHAR(5)", "CHAR(7)")
BYTES = ("BYTES", "VARBINARY(3)", "BINARY(6)")
TIMESTAMPS = tuple(f"TIMESTAMP({p})" for p in (0, 1, 3, 5, 6, 9))
ZONED = tuple(f"{t} WITH LOCAL TIME ZONE" for t in TIMESTAMPS)
ARRAY = {"type": "ARRAY", "element": "INT"}
MAP = {"type": "MAP", "key": "STRING", "value": "INT"}
ROW = {
    "type": "ROW",
    "fields": [{"id": 9001, "name": "x", "type": "INT"}, {"id": 9002, "name": "y", "type": "DATE"}],
}
MOMENTS = [
    "1969-12-31T23:59:58.500", "1970-01-01T00:00:00.000", "2024-02-29T12:34:56.789",
    "1900-01-01T00:00:00.001",
]  # fmt: skip


def _moments(digits: int, suffix: str = "") -> list[str]:
    filled = [f"{text}123456"[: 20 + digits] if digits else text[:19] for text in MOMENTS]
    return [text + suffix for text in filled]


PAIRS: Sequence[tuple[Any, Sequence[Any], Sequence[Any]]] = [
    ("TINYINT", [-128, 0, 5, 127], (*NUMBERS[1:], *TEXTS, "BOOLEAN")),
    ("SMALLINT", [-32768, 0, 300, 32767], (*NUMBERS, *TEXTS, "BOOLEAN")),
    ("INT", [-(2**31), 0, 70_000, 2**31 - 1],
     (*NUMBERS, *TEXTS, "BOOLEAN", *TIMESTAMPS, *ZONED)),
    ("BIGINT", [-5_000_000_000, 0, 1, 2**40], (*NUMBERS, *TEXTS, "BOOLEAN")),
    ("BIGINT", [-5_000_000_000, 0, 1, 2**32], (*TIMESTAMPS[:-1], *ZONED[:-1])),
    ("FLOAT", [-1.5, 0.1, 16777216.0, 3.0e38], (*NUMBERS, *TEXTS)),
    ("FLOAT", [1.0e-7, 123.456, -0.0, 5.0e-5], (*NUMBERS, *TEXTS)),
    ("DOUBLE", [-1.5, 0.1, 1.0e300, 2.5], (*NUMBERS, *TEXTS)),
    ("DOUBLE", [9.3e18, -9.3e18, 0.005, 12345.675], (*NUMBERS, *TEXTS)),
    ("DECIMAL(5, 2)", ["-999.99", "0.00", "1.05", "2.50"], (*NUMBERS, *TEXTS, "DECIMAL(5, 1)")),
    ("DECIMAL(38, 18)", ["-98765432109876543210.123456789012345678", "0.000000000000000001",
                         "99999.995", "-0.5"], (*NUMBERS, *TEXTS)),
    ("BOOLEAN", [True, False, None, True], (*NUMBERS, *TEXTS)),
    ("STRING", ["1", "-0.9", "+12.75", "007"], NUMBERS),
    ("STRING", ["a longer text", "é𝄞", "", "exactly"], (*TEXTS[1:], *BYTES)),
    ("STRING", ["TRUE", "no", "1", "f"], ("BOOLEAN",)),
    ("STRING", ["2024-02-29", "1969-12-31 10:00:00", "2000-1-2", "19000"], ("DATE",)),
    ("STRING", ["10:11:12.3456", "1:2", "23", "4:5:6"], ("TIME(3)",)),
    ("STRING", ["2024-02-29 01:02:03.123456789", "1969-12-31 23:59:59.5", "2000-01-02", None],
     (*TIMESTAMPS, *ZONED)),
    ("BYTES", ["616263646566", "", "00ff", "61"], BYTES[1:]),
    ("BYTES", ["616263646566", "", "c3a9", "61"], TEXTS),
    ("DATE", ["1969-12-31", "2024-02-29", "0001-01-01", "9999-12-31"],
     ("STRING", *TIMESTAMPS[:-1], *ZONED[:-1])),
    ("TIME(3)", ["00:00:00.000", "23:59:59.990", "12:34:56.789", "01:00:00.100"],
     ("STRING", *TIMESTAMPS, *ZONED)),
    ("TIME(0)", ["00:00:00.000", "23:59:59.000", "12:34:56.000", None], ("STRING",)),
    *((f"TIMESTAMP({p})", _moments(p), ("STRING", "DATE", "BIGINT", "INT", *TIMESTAMPS, *ZONED))
      for p in (0, 3, 6, 9)),
    *((f"TIMESTAMP({p})", _moments(p)[1:3], ("TIME(3)",)) for p in (0, 3, 9)),
    *((f"TIMESTAMP({p}) WITH LOCAL TIME ZONE", _moments(p, "Z"),
       ("STRING", "DATE", "TIME(3)", "BIGINT", "INT", *TIMESTAMPS, *ZONED)) for p in (0, 6, 9)),
    (ARRAY, [[1, None], [], None, [3]], TEXTS[:2]),
    (MAP, [[["a", 1]], [], None, [["b", None]]], TEXTS[:1]),
    (ROW, [{"x": 1, "y": "2024-01-01"}, {"x": None, "y": None}, None, {"x": 2, "y": None}],
     TEXTS[:1]),
]  # fmt: skip


def columns() -> list[tuple[str, Any, Any, Sequence[Any]]]:
    """Name, old type, new type and values of one column for each cast."""
    wanted = [(old, new, values) for old, values, news in PAIRS for new in news if new != old]
    return [(f"c{i}", old, new, values) for i, (old, new, values) in enumerate(wanted)]


def rows(count: int = 4) -> list[Mapping[str, Any]]:
    """Rows of all columns; a column with fewer values ends in nulls."""
    found = columns()
    return [
        {"id": i} | {name: values[i] if i < len(values) else None for name, _, _, values in found}
        for i in range(count)
    ]
