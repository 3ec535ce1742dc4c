"""The same changes in JSON, read natively and in Python, and in Avro become the same rows."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ingestd.cdc.assembly import assemble_changes
from ingestd.cdc.base import (
    ChangeBatch,
    DataFormat,
    Decoded,
    FormatSettings,
    SourceTable,
    load_data_format,
)
from ingestd.cdc.change_images import CELL_ERRORS
from ingestd.cdc.columns.unavailable import TEXT
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.json.change_rows import Events, assemble
from ingestd.cdc.json.messages import Messages
from ingestd.cdc.json.row_plan import RowWants, make_plan
from ingestd.cdc.json.table_messages import read_natively
from ingestd.cdc.native_module import native_module
from ingestd.paimon.spec.data_types import DataType, RowKind
from tests.support.decoded import both_decoders
from tests.support.examples import examples
from tests.support.registered import Registered, chunk_of, envelope, event, record

FIELDS = {
    "id": ["null", "int"],
    "part": ["null", "string"],
    "label": ["null", "string"],
    "n": ["null", "long"],
}
SCHEMA = [{"name": name, "type": kind} for name, kind in FIELDS.items()]
TYPES = {"id": "INT", "part": "STRING", "label": "STRING", "n": "BIGINT"}
KNOWN = {
    SourceTable("inv", "public", "item"): {name: DataType(kind) for name, kind in TYPES.items()}
}
Row = dict[str, Any]
Change = tuple[str, Row | None, Row | None, Row]


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """Operation, after image, before image and message key of a change."""
    after, before = draw(images()), draw(st.none() | images())
    kind = draw(st.sampled_from("cuuudd"))
    if kind == "d":
        return kind, None, before, {name: (before or after)[name] for name in ("id", "part")}
    return kind, after, before, {name: after[name] for name in ("id", "part")}


def images() -> st.SearchStrategy[Row]:
    cells = {
        "id": st.sampled_from([1, 1, 2, None]),
        "part": st.sampled_from(["a", "a", "b", None]),
        "label": st.sampled_from([None, "x", "y", TEXT]),
        "n": st.none() | st.integers(-3, 3),
    }
    return st.fixed_dictionaries(cells)


def told(decoded: Decoded) -> tuple[list[Any], list[tuple[int, str]]]:
    """All rows in order of offsets, and where records were rejected and why."""
    rows = [row for batch in decoded.batches for row in batch_rows(batch)]
    rejected = [(one.offset, one.reason) for one in decoded.rejected]
    return sorted(rows, key=lambda row: row[0]), sorted(rejected)


def batch_rows(batch: ChangeBatch) -> list[Any]:
    """Offset, kind, cells, omitted columns and key of each row."""
    cells = batch.columns.to_pylist()
    rows = []
    for place, (offset, kind) in enumerate(
        zip(batch.offset.tolist(), batch.row_kind.tolist(), strict=True)
    ):
        row = {name: cells[place].get(name) for name in FIELDS}
        omitted = [name for name, marks in batch.unavailable.items() if marks[place]]
        rows.append((offset, RowKind(kind).symbol, row, sorted(omitted), batch.primary_keys))
    return rows


def sources(stream: list[Change], lacking: frozenset[str], *, keyed: bool, before: bool) -> Any:
    """What each source of changes makes of them; rows lack some columns, keys none."""
    registry = Registered()
    fields = [field for field in SCHEMA if field["name"] not in lacking]
    events = [
        event(kind, without(after, lacking), without(old, lacking))
        for kind, after, old, _ in stream
    ]
    keys = [key for *_, key in stream]
    texts = [json.dumps(event).encode() for event in events]
    key_texts = [json.dumps(key).encode() for key in keys]
    native, python = both_decoders(images=before)
    avro = load_data_format("debezium-avro", FormatSettings(schemas=registry, images=before))
    key_schema = record("Key", [field for field in SCHEMA if field["name"] in ("id", "part")])
    avro_keys = registry.avro(key_schema, *keys)
    avro_values = registry.avro(envelope(fields), *events)

    def decoded(decoder: DataFormat, values: list[bytes], key_values: list[bytes]) -> Any:
        chunk = chunk_of(values, [*key_values] if keyed else None)
        return told(decoder.decode(chunk, KNOWN, {}))

    return {
        "native": decoded(native, texts, key_texts),
        "python": decoded(python, texts, key_texts),
        "avro": decoded(avro, avro_values, avro_keys),
    }


def without(row: Row | None, names: frozenset[str]) -> Row | None:
    """A row without some columns."""
    return None if row is None else {name: row[name] for name in row if name not in names}


A: Row = {"id": 1, "part": "a", "label": "x", "n": 1}
MOVED: Row = {**A, "id": 2}
NOTHING: frozenset[str] = frozenset()
LACKING = st.sampled_from([(), (), ("n",), ("part",), ("id", "part"), ("part", "label")])


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(changes(), min_size=1, max_size=6),
    LACKING.map(frozenset),
    st.booleans(),
    st.booleans(),
)
@example([("u", MOVED, A, {"id": 2, "part": "a"})], NOTHING, True, False)
@example([("u", MOVED, A, {"id": 2, "part": "a"})], NOTHING, True, True)
@example([("d", None, A, {"id": 1, "part": "a"})], NOTHING, False, True)
@example([("u", A, A, {"id": 1, "part": "a"})], frozenset({"part"}), True, True)
@example([("u", MOVED, A, {"id": 2, "part": "a"})], frozenset({"part"}), True, False)
@example([("d", None, None, {"id": 1, "part": TEXT})], NOTHING, True, False)
@example(
    [("u", {**A, "part": TEXT}, {**A, "part": TEXT}, {"id": 1, "part": TEXT})], NOTHING, True, True
)
@example([("d", None, None, {"id": 1, "part": "a"}), ("c", A, None, A)], NOTHING, False, False)
def test_rows_do_not_depend_on_where_changes_come_from(
    stream: list[Change], lacking: frozenset[str], keyed: bool, before: bool
) -> None:
    found = sources(stream, lacking, keyed=keyed, before=before)
    assert found["native"] == found["python"]
    assert found["avro"] == found["python"]


@st.composite
def partial_changes(draw: st.DrawFn) -> Change:
    """A change whose images lack some of their fields, and whose delete may have no image."""
    kind, after, before, key = draw(changes())
    names = st.lists(st.sampled_from(sorted(FIELDS)), max_size=3).map(frozenset)
    return kind, without(after, draw(names)), without(before, draw(names)), key


SOURCE = SourceTable("inv", "public", "item")
COLUMNS = {name: WireColumn(name, DataType(kind)) for name, kind in TYPES.items()}


@pytest.mark.skipif(native_module() is None, reason="the native extension is not built")
@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(partial_changes(), min_size=1, max_size=6),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(), ("id",), ("id", "part"), ("part", "id")]),
    st.booleans(),
)
@example([("u", {"label": "y"}, None, {"id": 1, "part": "a"})], True, False, ("id",), True)
@example([("u", {"id": 1, "n": 2}, {"n": 1}, A)], True, True, ("id",), False)
@example([("u", {"id": 2}, {"id": 1}, A), ("d", None, A, A)], True, True, ("id",), False)
@example([("d", None, {"label": "x"}, A), ("d", None, {"n": 1}, A)], False, False, (), False)
@example([("d", None, {"id": 1, "n": 1}, A)], False, True, ("id", "part"), False)
def test_images_without_some_fields_come_out_the_same(
    stream: list[Change], partial: bool, before: bool, key_names: tuple[str, ...], keyed: bool
) -> None:
    """What the native reader reads without the decoder in Python are the same rows."""
    wants = RowWants(partial=partial, images=before)
    plan = make_plan(SOURCE, COLUMNS, {}, key_names, native_module(), wants=wants)
    values = [json.dumps(event(kind, after, old)).encode() for kind, after, old, _ in stream]
    own = [json.dumps({name: key[name] for name in key_names}).encode() for *_, key in stream]
    keys = own if keyed and key_names else None
    offsets = np.arange(len(values))

    structs = Events(
        plan.changes.many(values), None if keys is None else plan.keys.many(keys), offsets
    )
    messages = Messages(values, keys, offsets)
    try:
        python = assemble(plan, structs)
    except ValueError:
        with pytest.raises(CELL_ERRORS):
            assemble_changes(read_natively(plan.native, plan, messages))
    else:
        native = assemble_changes(read_natively(plan.native, plan, messages))
        assert batch_rows(native) == batch_rows(python)
        assert native.columns.schema.equals(python.columns.schema)
