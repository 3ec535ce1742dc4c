"""One column of every type that a data file carries, and rows at the borders of their values."""

from decimal import Decimal
from typing import Any

COLUMNS: list[tuple[str, Any]] = [
    ("id", "BIGINT"),
    ("boolean", "BOOLEAN"),
    ("tinyint", "TINYINT"),
    ("smallint", "SMALLINT"),
    ("int", "INT"),
    ("float", "FLOAT"),
    ("double", "DOUBLE"),
    ("decimal5", "DECIMAL(5, 2)"),
    ("decimal18", "DECIMAL(18, 9)"),
    ("decimal38", "DECIMAL(38, 18)"),
    ("char", "CHAR(6)"),
    ("varchar", "VARCHAR(20)"),
    ("string", "STRING"),
    ("binary", "BINARY(4)"),
    ("bytes", "BYTES"),
    ("date", "DATE"),
    ("time", "TIME(3)"),
    ("timestamp0", "TIMESTAMP(0)"),
    ("timestamp3", "TIMESTAMP(3)"),
    ("timestamp6", "TIMESTAMP(6)"),
    ("ltz0", "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
    ("ltz3", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("ltz6", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("array", {"type": "ARRAY", "element": "INT"}),
    ("arrays", {"type": "ARRAY", "element": {"type": "ARRAY", "element": "DECIMAL(12, 3)"}}),
    ("map", {"type": "MAP", "key": "STRING", "value": "BIGINT"}),
    ("lists", {"type": "MAP", "key": "INT", "value": {"type": "ARRAY", "element": "STRING"}}),
    (
        "row",
        {
            "type": "ROW",
            "fields": [
                {"id": 1, "name": "x", "type": "INT"},
                {"id": 2, "name": 'y"é', "type": "STRING"},
                {
                    "id": 3,
                    "name": "z",
                    "type": {
                        "type": "ROW",
                        "fields": [{"id": 4, "name": "p", "type": "TIMESTAMP(6)"}],
                    },
                },
            ],
        },
    ),
]

_YEAR_10000_MS = 253_402_300_800_000
_YEAR_0_MS = -62_167_219_200_000

ROWS: list[dict[str, Any]] = [
    {"id": 1},
    {
        "id": 2,
        "boolean": True,
        "tinyint": -128,
        "smallint": -5,
        "int": 2**31 - 1,
        "float": 1e-7,
        "double": -0.0,
        "decimal5": Decimal("-999.99"),
        "decimal18": Decimal("0.000000001"),
        "decimal38": Decimal("0E-18"),
        "char": "ab",
        "varchar": '\x01\x1f\x7f"\\/\b\u2028',
        "string": "𝄞é\ue000",
        "binary": b"\0\1\2\3",
        "bytes": b"",
        "date": -1_000_000,
        "time": 86_399_999,
        "timestamp0": -1,
        "timestamp3": _YEAR_10000_MS,
        "timestamp6": -(2**62),
        "ltz0": 10**15,
        "ltz3": _YEAR_0_MS - 1,
        "ltz6": 0,
        "array": [1, None],
        "arrays": [[Decimal("1.500"), None], None, []],
        "map": [("b", 1), ("a", None), ("\ue000", 2), ("𝄞", 3)],
        "lists": [(10, ["x"]), (9, None)],
        "row": (1, "q", (5,)),
    },
    {
        "id": 3,
        "float": float("nan"),
        "double": float("inf"),
        "date": 2**31 - 1,
        "timestamp6": 2**63 - 1,
        "row": (None, None, None),
        "array": [],
        "map": [],
    },
    {"id": 4, "float": 3.4e38, "double": 5e-324, "date": -(2**31), "timestamp6": -(2**63)},
    {
        "id": 5,
        "double": 2.0e-3,
        "date": 2_932_897,
        "timestamp3": _YEAR_0_MS + 1,
        "decimal38": Decimal("-98765432109876543210.123456789012345678"),
    },
    {"id": 6, "double": 1.0e23, "string": "a" * 200 + "\U0010ffff", "float": -1.1754944e-38},
]
