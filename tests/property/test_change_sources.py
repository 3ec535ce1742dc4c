"""The same changes in JSON, read natively and in Python, and in Avro become the same rows."""

import json
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import DataFormat, Decoded, FormatSettings, SourceTable, load_data_format
from ingestd.cdc.columns.unavailable import TEXT
from ingestd.paimon.spec.data_types import DataType, RowKind
from tests.support.decoded import both_decoders
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
    rows = []
    for batch in decoded.batches:
        cells = batch.columns.to_pylist()
        for place, (offset, kind) in enumerate(
            zip(batch.offset.tolist(), batch.row_kind.tolist(), strict=True)
        ):
            row = {name: cells[place].get(name) for name in FIELDS}
            omitted = [name for name, marks in batch.unavailable.items() if marks[place]]
            rows.append((offset, RowKind(kind).symbol, row, sorted(omitted), batch.primary_keys))
    rejected = [
        (rejected_record.offset, rejected_record.reason) for rejected_record in decoded.rejected
    ]
    return sorted(rows, key=lambda row: row[0]), sorted(rejected)


def sources(stream: list[Change], *, keyed: bool, before: bool) -> dict[str, Any]:
    """What each source of changes makes of them."""
    registry = Registered()
    events = [event(kind, after, old) for kind, after, old, _ in stream]
    keys = [key for *_, key in stream]
    texts = [json.dumps(one).encode() for one in events]
    key_texts = [json.dumps(key).encode() for key in keys]
    native, python = both_decoders(images=before)
    avro = load_data_format("debezium-avro", FormatSettings(schemas=registry, images=before))
    key_schema = record("Key", [one for one in SCHEMA if one["name"] in ("id", "part")])
    avro_keys = registry.avro(key_schema, *keys)
    avro_values = registry.avro(envelope(SCHEMA), *events)

    def decoded(decoder: DataFormat, values: list[bytes], key_values: list[bytes]) -> Any:
        chunk = chunk_of(values, [*key_values] if keyed else None)
        return told(decoder.decode(chunk, KNOWN, {}))

    return {
        "native": decoded(native, texts, key_texts),
        "python": decoded(python, texts, key_texts),
        "avro": decoded(avro, avro_values, avro_keys),
    }


A: Row = {"id": 1, "part": "a", "label": "x", "n": 1}
MOVED: Row = {**A, "id": 2}


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(changes(), min_size=1, max_size=6), st.booleans(), st.booleans())
@example([("u", MOVED, A, {"id": 2, "part": "a"})], True, False)
@example([("u", MOVED, A, {"id": 2, "part": "a"})], True, True)
@example([("d", None, A, {"id": 1, "part": "a"})], False, True)
def test_rows_do_not_depend_on_where_changes_come_from(
    stream: list[Change], keyed: bool, before: bool
) -> None:
    found = sources(stream, keyed=keyed, before=before)
    assert found["native"] == found["python"]
    assert found["avro"] == found["python"]
