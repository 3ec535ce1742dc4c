"""Learn the columns of a table from its messages and their schemas.

Kinds of values are counted by column; `plan_of` returns the row plan, from the schema in the
messages, from declared and known types, or from the kinds alone.

Every row of a batch has a cell for each of its columns, so n messages with one new column each
would have n times n cells. Columns that the table has are not limited. More than `FEW` columns that
it lacks may have at most as many cells as the messages have bytes; otherwise the messages become
several batches. That does not happen if each message has most of the columns.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from ingestd.cdc.base import SourceTable
from ingestd.cdc.columns.json_inference import Kinds, default_kinds, kinds_of, resolve_type
from ingestd.cdc.columns.key_types import key_column
from ingestd.cdc.columns.type_mapping import DECIMAL_NO_CHANGE, TO_STRING
from ingestd.cdc.columns.wire_column import STRING, Meaning, WireColumn
from ingestd.cdc.json.row_plan import RowPlan, RowWants, check_name, make_plan
from ingestd.cdc.native_module import NativeModule
from ingestd.cdc.record_errors import PARSE_ERRORS, RecordError, explain, refuse
from ingestd.cdc.texts import Texts, bytes_of
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataType

Types = Mapping[str, DataType]
CellKinds = Mapping[str, tuple[str, ...]]
"""Kinds of the values of one message by column."""
KindCounts = Mapping[str, Counter[str]]
"""How often each kind occurred in each column."""


MOST_IN_A_RECORD = 32_768
"""Limit of columns in a message that its plan does not have."""
FEW = 256
"""Columns that the table lacks and that are always accepted."""


class _Images(msgspec.Struct, gc=False):
    before: msgspec.Raw = msgspec.Raw(b"null")
    after: msgspec.Raw = msgspec.Raw(b"null")


_decode_images = msgspec.json.Decoder(_Images).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


@dataclass(slots=True)
class TableMemory:
    """The state learnt from messages of one table, schema and kind of key.

    `value_columns` and `key_columns` are those of the schema in the messages, None without one.
    `module` builds native plans. `type_mapping` are names of `type_mapping`. With `partial`
    updates omit columns that they did not change; with `images` before images are decoded, too.
    `width` is the number of columns of the plan that the table lacks.
    """

    source: SourceTable
    key_names: tuple[str, ...]
    value_columns: tuple[WireColumn, ...] | None
    key_columns: tuple[WireColumn, ...] | None
    kinds: KindCounts = field(default_factory=dict)
    plan: RowPlan | None = None
    width: int = 0
    known: Types = field(default_factory=dict)
    declared: Types = field(default_factory=dict)
    module: NativeModule | None = None
    type_mapping: frozenset[str] = frozenset()
    partial: bool = False
    images: bool = False

    def fixed(self, name: str) -> DataType | None:
        """Return the declared type of a column."""
        declared = self.declared.get(name)
        return STRING if declared is None and TO_STRING in self.type_mapping else declared

    def lacking(self, names: Iterable[str]) -> list[str]:
        """Return the names without a column in the table; empty if messages have a schema."""
        if self.value_columns is not None:
            return []
        return [name for name in names if name not in self.known]

    def remember(self, plan: RowPlan, counts: KindCounts) -> None:
        """Cache the plan, the counts and the number of columns that the table lacks."""
        self.plan, self.kinds, self.width = plan, counts, len(self.lacking(counts))

    def takes(self, values: Sequence[bytes | None]) -> bool:
        """Return False if the cached plan has too many columns for these messages."""
        return self.plan is None or not too_many_cells(self.width, values)

    def forget(self) -> None:
        """Forget the columns that the table lacks."""
        lacking = frozenset(self.lacking(self.kinds))
        self.plan, self.width = None, 0
        self.kinds = {n: counter for n, counter in self.kinds.items() if n not in lacking}

    def is_current(self, known: Types, declared: Types) -> bool:
        """Return whether the plan was made for these types."""
        return self.plan is not None and known == self.known and declared == self.declared

    def renew(self, known: Types, declared: Types) -> None:
        """Set new types; with a schema in the messages, build the plan from them."""
        self.plan, self.width, self.known, self.declared = None, 0, dict(known), dict(declared)
        if self.value_columns is not None:
            self.plan = plan_of(self, self.kinds)


def look_into(value: bytes, key: bytes | None, *, images: bool = False) -> CellKinds:
    """Return the kinds of all values in the row images of a message. Raises RecordError.

    With `images`, before images count as well.
    """
    part = "message value"
    try:
        found = _decode_images(value)
        fields = [found.after]
        if key is None or images:
            fields.append(found.before)
        cells: dict[str, set[str]] = {}
        for image in fields:
            _add_kinds(cells, bytes(image))
        part = "message key"
        if key is not None:
            _add_kinds(cells, key)
    except PARSE_ERRORS as error:
        raise RecordError(explain(error, part)) from error
    check_width(cells)
    for name in cells:
        check_name(name)
    return {name: tuple(kinds) for name, kinds in cells.items()}


def _add_kinds(cells: dict[str, set[str]], image: bytes) -> None:
    if image != b"null":
        for name, raw in _decode_fields(image).items():
            cells.setdefault(name, set()).update(kinds_of(bytes(raw)))


def counted(before: KindCounts, seen: Iterable[CellKinds], weight: int = 1) -> KindCounts:
    """Return the counts with those of further messages, each of which counts `weight` times."""
    counts = {name: counter.copy() for name, counter in before.items()}
    for cells in seen:
        for name, kinds in cells.items():
            counter = counts.setdefault(name, Counter())
            for kind in kinds:
                counter[kind] += weight
    return counts


def plan_of(memory: TableMemory, counts: KindCounts) -> RowPlan:
    """Return the plan for these kinds of values. Raises RecordError, UnsupportedError."""
    if memory.value_columns is not None:
        columns = _schema_columns(memory, memory.value_columns)
    else:
        columns = _inferred_columns(memory, counts)
        if not any(columns.values()):
            # A row whose values are all null still needs a column.
            columns = {name: WireColumn(name, STRING) for name in columns}
    kinds: dict[str, Kinds] = {}
    for name, column in columns.items():
        kinds[name] = frozenset(counts.get(name, ()))
        if column is not None and memory.value_columns is not None:
            kinds[name] |= default_kinds(column)
    return make_plan(
        memory.source,
        columns,
        kinds,
        memory.key_names,
        memory.module,
        wants=RowWants(memory.partial, memory.images),
    )


def _schema_columns(
    memory: TableMemory, value_columns: tuple[WireColumn, ...]
) -> dict[str, WireColumn | None]:
    """Return the columns of the schema in the messages, in their declared types."""
    natural = {column.name: column for column in (memory.key_columns or ())}
    natural |= {column.name: column for column in value_columns}
    ordered = dict.fromkeys([column.name for column in value_columns] + list(memory.key_names))
    columns: dict[str, WireColumn | None] = {}
    for name in ordered:
        column = natural.get(name) or WireColumn(name, STRING, Meaning.JSON)
        if name in memory.key_names:
            column = key_column(column)
        columns[name] = _as_declared(_sized(column, memory), memory.fixed(name))
    return columns


def _sized(column: WireColumn, memory: TableMemory) -> WireColumn:
    """Return columns with the table's decimal sizes, where those of messages do not count."""
    known = memory.known.get(column.name)
    if known is None or known.root != "DECIMAL" or column.data_type.root != "DECIMAL":
        return column
    if column.sized and DECIMAL_NO_CHANGE not in memory.type_mapping:
        return column
    return replace(column, data_type=known.as_nullable())


def _as_declared(column: WireColumn, declared: DataType | None) -> WireColumn:
    if declared is None or declared.as_nullable() == column.data_type:
        return column
    if column.text and declared.root in CHARACTER_ROOTS:
        return WireColumn(column.name, declared)
    if column.meaning is Meaning.SOURCE_TEXT:
        return replace(column, data_type=declared.as_nullable())
    return column.declared_as(declared)


def _inferred_columns(memory: TableMemory, counts: KindCounts) -> dict[str, WireColumn | None]:
    columns: dict[str, WireColumn | None] = {}
    untouched = memory.known if memory.partial else ()
    for name in dict.fromkeys([*counts, *memory.key_names, *untouched]):
        data_type = resolve_type(
            counts.get(name, Counter()),
            memory.fixed(name),
            memory.known.get(name),
            is_key=name in memory.key_names,
        )
        columns[name] = None if data_type is None else WireColumn(name, data_type.as_nullable())
    return columns


class TooManyCellsError(Exception):
    """Columns that the table lacks would make more cells than the messages have bytes."""


def check_width(names: Collection[str]) -> None:
    """Raise RecordError for a message with more than `MOST_IN_A_RECORD` columns."""
    if len(names) > MOST_IN_A_RECORD:
        raise refuse(
            "schema",
            "too-many-columns",
            f"the message has {len(names)} columns; {MOST_IN_A_RECORD} are read of one message",
        )


def too_many_cells(lacking: int, values: Texts) -> bool:
    """Return whether messages with `lacking` columns that the table lacks exceed one batch."""
    if lacking <= FEW:
        return False
    return _too_many(lacking, len(values), bytes_of(values))


def _too_many(lacking: int, messages: int, size: int) -> bool:
    return lacking > FEW and messages > 1 and lacking * messages > size


def check_cells(lacking: int, values: Sequence[bytes]) -> None:
    """Raise TooManyCellsError if the messages exceed one batch."""
    if too_many_cells(lacking, values):
        raise TooManyCellsError


def parts(
    values: Sequence[bytes], lacking_in: Callable[[int], Collection[str]]
) -> Iterator[tuple[int, int]]:
    """Yield the ranges `[start, end)` of consecutive messages that fit into one batch.

    `lacking_in` returns the columns of the message at an index that the table lacks.
    """
    start, size = 0, 0
    names: set[str] = set()
    for place, value in enumerate(values):
        added = [name for name in lacking_in(place) if name not in names]
        size += len(value)
        if _too_many(len(names) + len(added), place - start + 1, size):
            yield start, place
            start, size, names = place, len(value), set()
            added = list(lacking_in(place))
        names.update(added)
    yield start, len(values)
