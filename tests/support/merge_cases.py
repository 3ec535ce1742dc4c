"""Random tables of every merge engine, and batches of changes for them.

    case = random_case(random.Random(7))
    case.columns, case.options, case.batches

Cells are as ``ingestd.paimon.spec.arrow.column_of`` takes them; the key is the column ``k``.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

from pyroaring import BitMap

from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.honoured_options import REMOVE_ON_GROUP
from ingestd.paimon.spec.roaring64 import Bitmap64, encode_roaring64

INTS: Any = {"type": "ARRAY", "element": "INT"}
ROWS: Any = {
    "type": "ARRAY",
    "element": {
        "type": "ROW",
        "fields": [
            {"id": 50, "name": "id", "type": "INT"},
            {"id": 51, "name": "v", "type": "STRING"},
        ],
    },
}
MAP: Any = {"type": "MAP", "key": "STRING", "value": "INT"}
BITMAPS_64 = "VARBINARY(100000)"
"""The type of the columns whose cells are bitmaps of 64 bits."""
TIMED: Any = {
    "type": "MAP",
    "key": "STRING",
    "value": {
        "type": "ROW",
        "fields": [
            {"id": 52, "name": "a", "type": "INT"},
            {"id": 53, "name": "ts", "type": "STRING"},
        ],
    },
}
FUNCTIONS: Mapping[str, Sequence[Any]] = {
    "sum": [
        "INT", "BIGINT", "TINYINT", "SMALLINT", "DOUBLE", "FLOAT", "DECIMAL(12, 2)",
        "DECIMAL(22, 2)",
    ],
    "product": ["INT", "TINYINT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(12, 2)"],
    "max": ["INT", "STRING", "DOUBLE", "DATE", "TIMESTAMP(3)", "DECIMAL(22, 2)"],
    "min": ["INT", "STRING", "DOUBLE", "DATE", "DECIMAL(12, 2)"],
    "last_value": ["INT", "STRING"],
    "last_non_null_value": ["INT", "STRING", "DOUBLE"],
    "first_value": ["INT", "STRING"],
    "first_non_null_value": ["INT", "STRING"],
    "bool_and": ["BOOLEAN"],
    "bool_or": ["BOOLEAN"],
    "listagg": ["STRING"],
    "collect": [INTS, ROWS],
    "merge_map": [MAP],
    "merge_map_with_keytime": [TIMED],
    "nested_update": [ROWS],
    "nested_partial_update": [ROWS],
    "primary-key": ["INT"],
    "rbm32": ["BYTES"],
    "rbm64": [BITMAPS_64],
}  # fmt: skip
RETRACTABLE = {
    "sum", "product", "last_value", "last_non_null_value", "primary-key", "collect", "merge_map",
    "nested_update",
}  # fmt: skip
UNORDERED = {
    "collect", "merge_map", "merge_map_with_keytime", "nested_update", "nested_partial_update",
}  # fmt: skip
CELLS: Mapping[str, Sequence[Any]] = {
    "INT": [-3, 0, 1, 5, 2**31 - 1],
    "BIGINT": [-3, 0, 1, 5, 2**62],
    "SMALLINT": [-3, 0, 2, 120, 2**15 - 1],
    "TINYINT": [-3, 0, 2, 127, -128],
    "STRING": ["", "a", "b", "a,b", "é", "zz", "b,a"],
    "BOOLEAN": [True, False],
    "DOUBLE": [0.1, 0.2, 0.3, -1.75, 1e16, -0.0, 0.0],
    "FLOAT": [0.25, 0.5, -1.5, 3.75],
    "DATE": [-1, 0, 19_000],
    "TIMESTAMP(3)": [-1, 0, 10**12],
    "DECIMAL(12, 2)": [Decimal(text) for text in ("1.10", "-2.35", "1000000000.00", "0.01")],
    "DECIMAL(22, 2)": [
        Decimal(text) for text in ("1.10", "-2.35", f"{10**20 - 1}.00", f"-{9 * 10**19}.00")
    ],
}  # fmt: skip


def bitmap64(numbers: Iterable[int]) -> Bitmap64:
    """A bitmap to which the numbers were added one after the other."""
    bitmap = Bitmap64()
    for number in numbers:
        key = (number >> 16).to_bytes(6)
        if key in bitmap.containers:
            bitmap.containers[key].add(number & 0xFFFF)
        else:
            bitmap.add(Bitmap64({key: BitMap([number & 0xFFFF])}))
    return bitmap


CELLS = {
    **CELLS,
    BITMAPS_64: [
        encode_roaring64(bitmap64(numbers))
        for numbers in (
            (),
            (1, 2),
            (2, 70_000, 2**32 - 1, 1 << 40, 2**64 - 1),
            range(3, 9000),
            [n << 30 | n for n in range(60)],
            range(1 << 40, (1 << 40) + 20_000, 2),
        )
    ],
    "BYTES": [
        BitMap(numbers).serialize()
        for numbers in ((), (1, 2), (2, 70_000, 2**32 - 1), range(3, 9000), range(0, 20_000, 2))
    ],
}
ADDS, ALL = (0, 2), (0, 1, 2, 3)


@dataclass(frozen=True)
class MergeCase:
    """A table and the changes written to it; `unordered` columns have elements in no order."""

    columns: list[tuple[str, Any]]
    options: dict[str, str]
    unordered: tuple[str, ...]
    batches: list[list[dict[str, Any]]]

    @property
    def retracts(self) -> bool:
        """Whether a row takes back."""
        return any(row["_kind"] in (1, 3) for batch in self.batches for row in batch)

    def settled(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Rows such that they compare."""
        return sorted(json.dumps(self._settled(row), sort_keys=True, default=str) for row in rows)

    def _settled(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: sorted(cell, key=repr) if name in self.unordered and cell else cell
            for name, cell in row.items()
        }


def with_ages(random: Random, case: MergeCase, times: Sequence[int | None]) -> MergeCase:
    """The case with rows that expire after a day by one of `times`, in seconds."""
    return replace(
        case,
        columns=[*case.columns, ("at", "INT")],
        options={
            **case.options,
            "record-level.expire-time": "1 d",
            "record-level.time-field": "at",
        },
        batches=[[{**row, "at": random.choice(times)} for row in batch] for batch in case.batches],
    )


def random_case(random: Random) -> MergeCase:
    """A table of any merge engine whose batches it can take."""
    engine = random.choice(
        ["aggregation", "aggregation", "partial-update", "partial-update", "rest"]
    )
    retracts = random.random() < 0.5
    if engine == "aggregation":
        columns, options, kinds = _aggregation(random, retracts)
    elif engine == "partial-update":
        columns, options, kinds = _partial_update(random, retracts)
    else:
        columns, options, kinds = _deduplicate(random)
    options |= {"bucket": "1"}
    unordered = [
        name for name, _ in columns if options.get(f"fields.{name}.aggregate-function") in UNORDERED
    ]
    batches = [
        [_row(random, columns, kinds) for _ in range(random.randint(1, 9))]
        for _ in range(random.randint(1, 4))
    ]
    return MergeCase([("k", "INT"), *columns], options, tuple(unordered), batches)


_Parts = tuple[list[tuple[str, Any]], dict[str, str], Sequence[int]]


def _deduplicate(random: Random) -> _Parts:
    options = {}
    if random.random() < 0.8:
        options["sequence.field"] = random.choice(["s", "t", "s,t", "t,s"])
        options["sequence.field.sort-order"] = "ascending"
    for name in ("ignore-delete", "ignore-update-before"):
        if random.random() < 0.3:
            options[name] = "true"
    return [("s", "INT"), ("t", "DATE"), ("v", "STRING")], options, ALL


def _aggregation(random: Random, retracts: bool) -> _Parts:
    columns, options = _functions(random, ("a", "b", "c", "d"), retracts)
    options["merge-engine"] = "aggregation"
    if random.random() < 0.4:
        columns.append(("s", "INT"))
        options["sequence.field"] = "s"
    columns.append(("plain", "STRING"))
    if random.random() < 0.3:
        options["fields.default-aggregate-function"] = "last_value"
    if retracts and random.random() < 0.3:
        kept = {k: v for k, v in options.items() if not k.endswith("ignore-retract")}
        return columns, {**kept, "aggregation.remove-record-on-delete": "true"}, (0, 2, 3)
    return columns, options, ALL if retracts else ADDS


def _partial_update(random: Random, retracts: bool) -> _Parts:
    columns: list[tuple[str, Any]] = [("p", "INT"), ("q", "STRING")]
    options = {"merge-engine": "partial-update"}
    how = random.choice(
        ["plain", "ignore-delete", "partial-update.remove-record-on-delete", "", ""]
    )
    if how:
        if random.random() < 0.3:
            options["sequence.field"] = "p"
        return (
            columns,
            options | ({} if how == "plain" else {how: "true"}),
            (ADDS if how == "plain" else ALL),
        )
    grouped, functions = _functions(random, ("c", "d", "e"), retracts)
    plain = [name for name in "cde" if random.random() < 0.4]
    options |= {k: v for k, v in functions.items() if k.split(".")[1] not in plain}
    columns += [("g1", "INT"), ("g2", "INT"), ("g3", "STRING"), *grouped]
    random.shuffle(columns)
    options |= {"fields.g1.sequence-group": "c", "fields.g2,g3.sequence-group": "d,e"}
    if retracts and random.random() < 0.4:
        options[REMOVE_ON_GROUP.name] = random.choice(["g1", "g2", "g3", "g1,g2"])
    return columns, options, ALL if retracts else ADDS


def _functions(
    random: Random, names: Sequence[str], retracts: bool
) -> tuple[list[tuple[str, Any]], dict[str, str]]:
    columns, options = [], {}
    for name in names:
        function = random.choice(list(FUNCTIONS))
        kind = random.choice(FUNCTIONS[function])
        # Java cannot compare the rows in arrays that it takes back, and divides by zero.
        if retracts and function in ("collect", "product"):
            kind = INTS if function == "collect" else "DOUBLE"
        own = f"fields.{name}."
        options[f"{own}aggregate-function"] = function
        if retracts and (function not in RETRACTABLE or random.random() < 0.1):
            options[f"{own}ignore-retract"] = "true"
        if function in ("collect", "listagg") and random.random() < 0.5:
            options[f"{own}distinct"] = "true"
        if function == "listagg" and random.random() < 0.3:
            options[f"{own}list-agg-delimiter"] = random.choice(["-", ";;"])
        if function.startswith("nested") and (function != "nested_update" or random.random() < 0.6):
            options[f"{own}nested-key"] = random.choice(["id", "id,v"])
        if function == "nested_update" and random.random() < 0.3:
            options[f"{own}count-limit"] = str(random.randint(1, 3))
        columns.append((name, kind))
    return columns, options


def _row(
    random: Random, columns: Sequence[tuple[str, Any]], kinds: Sequence[int]
) -> dict[str, Any]:
    kind = random.choice(kinds) if random.random() < 0.4 else int(RowKind.INSERT)
    cells = {name: _cell(random, t) for name, t in columns}
    return {"k": random.randint(0, 4), "_kind": kind, **cells}


def _cell(random: Random, t: Any) -> Any:
    if random.random() < 0.25:
        return None
    if isinstance(t, str):
        return random.choice(CELLS[t])
    count = random.randint(0, 3)
    if t == INTS:
        return [random.choice([None, 1, 2, 3]) for _ in range(count)]
    if t == ROWS:
        return [
            {"id": random.choice([None, 1, 2]), "v": random.choice([None, "x", "y"])}
            for _ in range(count)
        ]
    keys = random.sample("abc", count)
    if t == MAP:
        return [(key, random.choice([None, 1, 2])) for key in keys]
    return [(key, _timed(random)) for key in keys]


def _timed(random: Random) -> dict[str, Any] | None:
    if random.random() < 0.15:
        return None
    return {"a": random.randint(0, 9), "ts": random.choice([None, "1", "2", "3"])}
