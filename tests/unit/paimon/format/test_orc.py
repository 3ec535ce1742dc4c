"""ORC files: what is written, and that it comes back."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.format.orc import MOST_COLUMNS, read_file
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.arrow import arrow_schema, column_of
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.file_options import COMPRESSIONS
from ingestd.paimon.table.write.table_write import encoded_size, write_file
from tests.support.every_type import COLUMNS, ROWS
from tests.support.native_tables import native_table, rows_table

PATH = "/t/data-1.orc"
FAR = {"timestamp3", "timestamp6", "ltz0", "ltz3"}


def _table(io: MemoryFileIO, columns: list[tuple[str, Any]], **options: str) -> Any:
    return native_table("/w", columns, io=io, options={"file.format": "orc", **options})


def test_every_type_comes_back() -> None:
    io = MemoryFileIO()
    table = _table(io, COLUMNS)
    near = [{name: v for name, v in row.items() if name not in FAR} for row in ROWS]
    rows = rows_table(table.schema, near)
    write_file(io, PATH, rows, table.options)
    found = evolve(read_file(io, PATH, None), table.schema.fields, table.schema.fields)
    # NaN is no equal of itself.
    assert found.drop(["float"]).equals(rows.drop(["float"]).cast(found.drop(["float"]).schema))


def test_field_ids_are_attributes_at_any_depth() -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", "INT"), ("l", {"type": "ARRAY", "element": "INT"})])
    rows = rows_table(table.schema, [{"a": 1, "l": [2]}]).cast(pa.schema(list(_with_ids(table))))
    write_file(io, PATH, rows, table.options)
    schema = orc.ORCFile(pa.BufferReader(io.read_bytes(PATH))).schema
    assert schema.field("l").metadata == {b"paimon.id": b"1"}
    assert schema.field("l").type.value_field.metadata == {b"paimon.id": b"536871936"}


def _with_ids(table: Any) -> Any:

    return arrow_schema(table.schema.fields)


@pytest.mark.parametrize("name", COMPRESSIONS["orc"])
def test_chosen_compression_is_used(name: str) -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", "INT")], **{"file.compression": name})
    write_file(io, PATH, rows_table(table.schema, [{"a": 1}] * 100), table.options)
    file = orc.ORCFile(pa.BufferReader(io.read_bytes(PATH)))
    assert file.compression.lower() == COMPRESSIONS["orc"][name]


def test_unknown_compression_is_refused_by_its_option() -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", "INT")], **{"file.compression": "gzip"})
    with pytest.raises(UnsupportedError, match=r"file\.compression.*gzip"):
        write_file(io, PATH, rows_table(table.schema, [{"a": 1}]), table.options)


def test_columns_come_in_the_order_asked_for_and_absent_ones_are_left_out() -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", "INT"), ("b.c", "INT"), ("d", "INT")])
    write_file(io, PATH, rows_table(table.schema, [{"a": 1, "b.c": 2, "d": 3}]), table.options)
    assert read_file(io, PATH, ["d", "z", "a"]).to_pydict() == {"d": [3], "a": [1]}
    assert read_file(io, PATH, ["b.c"]).to_pydict() == {"b.c": [2]}
    assert read_file(io, PATH, ["z"]).num_rows == 1


def test_size_is_reported_without_a_file() -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", "INT")])
    rows = rows_table(table.schema, [{"a": n} for n in range(1000)])
    assert encoded_size(rows, table.options) == write_file(io, PATH, rows, table.options)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("TIMESTAMP(6)", -1), ("TIMESTAMP(9)", -1_000_001),
     ({"type": "ARRAY", "element": "TIMESTAMP(6)"}, [-1]),
     ({"type": "MAP", "key": "INT", "value": "TIMESTAMP(9)"}, [(1, -1)])],
)  # fmt: skip
def test_early_timestamps_that_the_library_would_break_are_refused(kind: Any, value: Any) -> None:
    t = parse_type(kind)
    io = MemoryFileIO()
    options = _table(io, [("a", "INT")]).options
    with pytest.raises(UnsupportedError, match="column a: timestamps before 1970"):
        write_file(io, PATH, pa.table({"a": column_of([value], t)}), options)


def test_timestamps_beyond_nanoseconds_are_refused_and_not_garbage() -> None:
    sink = pa.BufferOutputStream()
    far = pa.table({"a": pa.array([253_402_300_800_000], pa.timestamp("ms"))})
    orc.write_table(far, sink)
    io = MemoryFileIO()
    io.write_new(PATH, sink.getvalue().to_pybytes())
    with pytest.raises(UnsupportedError, match=PATH):
        read_file(io, PATH, None)


@pytest.mark.parametrize("cut", [0, 3, 50, -1])
def test_damaged_file_is_a_format_error_that_names_it(cut: int) -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", "STRING")])
    write_file(
        io, PATH, rows_table(table.schema, [{"a": f"{n}"} for n in range(99)]), table.options
    )
    broken = f"{PATH}.broken"
    io.write_new(broken, io.read_bytes(PATH)[:cut])
    with pytest.raises(FormatError, match=broken):
        read_file(io, broken, None)


def test_damage_of_a_footer_compressed_with_zlib_is_a_format_error() -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", "STRING")], **{"file.compression": "zlib"})
    rows = rows_table(table.schema, [{"a": f"{n}"} for n in range(99)])
    write_file(io, PATH, rows, table.options)
    good = io.read_bytes(PATH)
    damaged = 0
    for position in range(len(good) - 100, len(good)):
        broken = bytearray(good)
        broken[position] ^= 0xFF
        io.overwrite(f"{PATH}.broken", bytes(broken))
        try:
            read_file(io, f"{PATH}.broken", None)
        except (FormatError, UnsupportedError):
            damaged += 1
    assert damaged


@pytest.mark.parametrize(
    ("unit", "value"), [("ms", 253_402_300_800_000), ("us", -11_676_096_000_000_000)]
)
def test_timestamps_that_could_not_be_read_again_are_not_written(unit: str, value: int) -> None:
    io = MemoryFileIO()
    options = _table(io, [("a", "INT")]).options
    far = pa.table({"a": pa.array([value], pa.timestamp(unit))})  # type: ignore[call-overload]
    with pytest.raises(UnsupportedError, match="column a: timestamps before 1677 and after 2262"):
        write_file(io, PATH, far, options)


def test_a_scale_that_no_decimal_has_is_refused_and_not_followed() -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", "DECIMAL(20, 2)")], **{"file.compression": "none"})
    write_file(io, PATH, rows_table(table.schema, [{"a": Decimal("1.25")}] * 600), table.options)
    data = io.read_bytes(PATH)
    # 512 times scale 2, and no difference between them.
    assert data.count(bytes([0xC1, 0xFF, 4, 0])) == 1
    broken = MemoryFileIO({PATH: data.replace(bytes([0xC1, 0xFF, 4, 0]), b"\xc1\xff\x04\x7f")})
    with pytest.raises(FormatError, match=rf"{PATH} is damaged.*scales of decimals up to 32706"):
        read_file(broken, PATH, ["a"])


def test_a_file_of_too_many_columns_is_refused_before_it_takes_the_memory() -> None:
    io = MemoryFileIO()
    options = _table(io, [("a", "INT")]).options
    pair = pa.struct([("x", pa.int32()), ("y", pa.map_(pa.string(), pa.list_(pa.int8())))])
    wide = {f"c{n}": pa.nulls(1, pair) for n in range(MOST_COLUMNS // 3)}
    more = {f"d{n}": pa.nulls(1, pa.int8()) for n in range(MOST_COLUMNS % 3 + 1)}
    with pytest.raises(
        UnsupportedError, match=rf"ORC files of {MOST_COLUMNS + 1} columns.*parquet"
    ):
        write_file(io, PATH, pa.table({**wide, **more}), options)
    assert not io.exists(PATH)


_ROW = {"type": "ROW", "fields": [{"id": 8, "name": "x", "type": "INT"}]}
_OUTER = {"type": "ROW", "fields": [{"id": 9, "name": "i", "type": _ROW}]}
_INNER: list[Any] = [(None,), ((7,),), ((8,),), (None,), None, ((9,),)]


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        (_OUTER, _INNER),
        ({"type": "ARRAY", "element": _OUTER}, [None, _INNER, []]),
        ({"type": "MAP", "key": "INT", "value": _OUTER}, [list(enumerate(_INNER)), None]),
        ({"type": "ROW", "fields": [{"id": 7, "name": "o", "type": _OUTER}]},
         [(cell,) for cell in _INNER]),
        ({"type": "ROW", "fields": [{"id": 7, "name": "a", "type": {
            "type": "ARRAY", "element": _OUTER}}]}, [(_INNER,), (None,), ([],)]),
    ],
)  # fmt: skip
def test_values_around_a_null_row_inside_a_row_are_their_own(kind: Any, cells: list[Any]) -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", kind)])
    rows = rows_table(table.schema, [{"a": cell} for cell in cells])
    # Not from the beginning of the buffers, too.
    for start in range(len(cells)):
        path = f"/t/data-{start}.orc"
        write_file(io, path, rows.slice(start), table.options)
        assert read_file(io, path, None).to_pydict() == rows.slice(start).to_pydict()


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        (None, 64 << 10), ("262144", 256 << 10), ("100000", 128 << 10),
        ("-1", 64 << 10), ("8388607", 8128 << 10), ("1000000000", 8128 << 10),
    ],
)  # fmt: skip
def test_compressed_chunks_have_the_size_of_the_option(asked: str | None, written: int) -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", "INT")], **({} if asked is None else {"orc.compress.size": asked}))
    rows = rows_table(table.schema, [{"a": number} for number in range(1000)])
    write_file(io, PATH, rows, table.options)
    assert orc.ORCFile(pa.BufferReader(io.read_bytes(PATH))).compression_size == written
    assert read_file(io, PATH, None).to_pydict() == rows.to_pydict()


def test_stripes_and_dictionaries_are_those_of_the_options() -> None:
    numbers = [number * 2_654_435_761 % (1 << 40) for number in range(200_000)]
    columns = {"a": pa.array(numbers, pa.int64()), "b": ["x", "y"] * 100_000}
    found = {}
    for name, value in (("", ""), ("orc.stripe.size", "65536"), ("file.block-size", "64 kb"),
                        ("orc.dictionary.key.threshold", "0.8")):  # fmt: skip
        io = MemoryFileIO()
        options = {"file.format": "orc", name: value} if name else {"file.format": "orc"}
        table = native_table("/w", [("a", "BIGINT"), ("b", "STRING")], io=io, options=options)
        rows = rows_table(table.schema, pa.table(columns).to_pylist())
        size = write_file(io, PATH, rows, table.options)
        file = orc.ORCFile(pa.BufferReader(io.read_bytes(PATH)))
        assert read_file(io, PATH, None).num_rows == 200_000
        found[name] = (file.nstripes, size)
    assert found["orc.stripe.size"][0] == found["file.block-size"][0] > found[""][0]
    assert found["orc.dictionary.key.threshold"][1] < found[""][1]
