"""The progress record in the properties of a snapshot, and how it is merged with a batch."""

import random
from base64 import b64encode

import pytest

from ingestd.errors import FormatError, OffsetGapError, UnsupportedError
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.ingest.tables.batch_span import (
    BatchSpan,
    TableStep,
    first_gap,
    next_record,
    refuse_gap,
    span_of,
)
from ingestd.ingest.tables.log_positions import Position, TopicName, furthest, lowest
from ingestd.ingest.tables.progress import (
    PipelineProgress,
    TableProgress,
    decode_pipeline,
    decode_properties,
    encode_pipeline,
    encode_properties,
    pipelines_in,
    property_names,
)
from ingestd.ingest.values.source_points import MAX_SKEW_MS, SourcePoint
from ingestd.kafka.offset_ranges import BatchOffsets

SOURCE_TABLE = QualifiedSourceTable("src", "db", "shop", "orders")
PIPELINE = PipelineProgress(
    end={"id": {0: Position(9, 3, 1 << 31), 12: Position(0)}, "old": {1: Position(5, 0)}},
    start={"id": {0: 5}},
    origin={"id": {12: 0, 3: 77}},
    topics={"id": TopicName("t", "src", "cluster"), "old": TopicName("t", "src")},
    tables={"db.a": 1, "db.b": 2},
    dropped={"db.b": 1},
    sources=frozenset({"src"}),
    accepted=frozenset({"old"}),
)
PROGRESS = TableProgress(
    pipeline=PIPELINE,
    topic_keys=frozenset({"id"}),
    source_tables=frozenset({SOURCE_TABLE, QualifiedSourceTable("src", None, None, "t")}),
    rows={"insert": 4},
    truncated=SourcePoint(77, 1_700_000_000_000),
    reached=SourcePoint(1 << 60, 1_700_000_000_001),
    batch="9",
)


def properties(progress: TableProgress, name: str = "job") -> dict[str, str]:
    return encode_properties(name, progress, encode_pipeline(progress.pipeline))


PLAIN = TableProgress(PipelineProgress(end={"id": {0: Position(9, 3)}}))
"""A record without fingerprints."""


@pytest.mark.parametrize("progress", [PROGRESS, PLAIN, TableProgress(PipelineProgress())])
def test_a_record_survives_the_properties_of_a_snapshot(progress: TableProgress) -> None:
    assert decode_properties("job", properties(progress), "snapshot-1") == progress


def test_records_of_several_pipelines_stand_beside_each_other() -> None:
    both = properties(PROGRESS) | properties(TableProgress(PipelineProgress()), "other")
    assert pipelines_in(both) == ["job", "other"]
    assert decode_properties("job", both, "snapshot-1") == PROGRESS
    assert decode_properties("third", both, "snapshot-1") is None
    assert decode_properties("job", {"other": "1"}, "snapshot-1") is None


@pytest.mark.parametrize(
    "change",
    [
        {"ingestd.table.job": "{"},
        {"ingestd.table.job": "{}"},
        {"ingestd.progress.job": "{}"},
        {"ingestd.progress.job": "z:0"},
        {"ingestd.progress.job": '{"topics": {"a": {"e": [1, 2], "k": [[0, 1]]}}}'},
    ],
)
def test_a_damaged_record_names_the_snapshot(change: dict[str, str]) -> None:
    with pytest.raises(FormatError, match="snapshot-1"):
        decode_properties("job", properties(PROGRESS) | change, "snapshot-1")


@pytest.mark.parametrize("version", ["1", "9"])
def test_a_record_of_another_version_is_refused(version: str) -> None:
    with pytest.raises(UnsupportedError, match=f"version {version}.*ingestd begin"):
        decode_properties("job", {"ingestd.v": version}, "snapshot-1")


def test_a_thousand_partitions_that_feed_a_hundred_tables_fit_in_twenty_kilobytes() -> None:
    chance = random.Random(7)
    end = {
        b64encode(chance.randbytes(16)).decode(): {
            index: Position(chance.randrange(10**12), 3 if index else 4, chance.getrandbits(32))
            for index in range(10)
        }
        for _ in range(100)
    }
    progress = PipelineProgress(
        end=end,
        topics={
            key: TopicName(f"shop.public.table_{n:03}", "shop", "c" * 22)
            for n, key in enumerate(end)
        },
        tables={f"ods.table_{number:03}": 1 for number in range(100)},
        sources=frozenset({"shop"}),
    )
    text = encode_pipeline(progress)
    assert decode_pipeline(text) == progress
    assert len(text) < 20_000 - 1_500, "room for what a snapshot says beside it"


def test_what_is_finished_ends_where_the_newest_batch_began() -> None:
    assert PIPELINE.finished["id"] == {0: Position(5), 12: Position(0)}
    assert PIPELINE.finished["old"] == {1: Position(5, 0)}


KEYS = {("src", "t"): "id", ("src", "new"): "new id"}


def test_a_batch_covers_what_it_reads_and_names_logs_that_are_new() -> None:
    offsets = BatchOffsets(
        {"src": {"t": {0: 9, 12: 0}, "new": {0: 4, 1: 0}}},
        {"src": {"t": {0: 20, 12: 0}, "new": {0: 6, 1: 0}}},
        {"src": {"t": {0: 3}}},
    )
    span, progress = span_of(offsets, KEYS, PIPELINE)
    assert span.start == {"id": {0: 9}, "new id": {0: 4, 1: 0}}, (
        "an idle log that is known is left out"
    )
    assert span.until == {
        "id": {0: Position(20, 3)},
        "new id": {0: Position(6, 0), 1: Position(0, 0)},
    }
    assert progress.origin["new id"] == {0: 4}
    assert progress.end["new id"] == {0: Position(4, 0), 1: Position(0, 0)}, "if it is set aside"
    assert progress.topics["new id"] == TopicName("new", "src")
    assert span_of(BatchOffsets({}, {}), KEYS, PIPELINE)[1] is PIPELINE


def test_a_batch_that_begins_beyond_what_a_table_covers_is_refused() -> None:
    covered = {"id": {0: Position(9), 12: Position(3)}}
    for start in ({"id": {0: 9, 12: 3}}, {"id": {0: 1}}, {"id": {3: 77}}, {"unknown": {0: 0}}):
        assert first_gap(covered, BatchSpan(start), PIPELINE) is None
    for start in ({"id": {0: 10}}, {"id": {0: 9, 12: 4}}, {"id": {3: 78}}, {"unknown": {0: 1}}):
        with pytest.raises(OffsetGapError, match=r"db\.a covers .* up to offset"):
            refuse_gap("db.a", covered, BatchSpan(start), PIPELINE)


def at(position: int) -> SourcePoint:
    return SourcePoint(position, 1_000)


def later(position: int) -> SourcePoint:
    return SourcePoint(position, 1_001 + MAX_SKEW_MS)


def test_truncates_feeds_and_positions_only_grow() -> None:
    first = next_record(
        None,
        PIPELINE,
        TableStep(frozenset({"id"}), frozenset({SOURCE_TABLE}), {}, at(50), at(60)),
    )
    second = next_record(first, PIPELINE, TableStep())
    assert (second.truncated, second.source_tables, second.topic_keys, second.reached) == (
        at(50),
        {SOURCE_TABLE},
        {"id"},
        at(60),
    )
    assert next_record(second, PIPELINE, TableStep(truncated=at(40))).truncated == at(50)
    assert next_record(second, PIPELINE, TableStep(truncated=at(70))).truncated == at(70)
    again = next_record(second, PIPELINE, TableStep(truncated=later(3), reached=later(4)))
    assert (again.truncated, again.reached) == (later(3), later(4)), "positions began again"
    assert len({first.record_id, second.record_id}) == 2


def test_the_least_advanced_vector_decides_and_an_absent_log_counts_as_its_origin() -> None:
    one = {"a": {0: Position(10), 1: Position(5)}}
    other = {"a": {0: Position(7)}, "b": {0: Position(3)}}
    assert lowest([one, other], {"b": {0: 2}}) == {
        "a": {0: Position(7), 1: Position(0)},
        "b": {0: Position(2)},
    }
    assert furthest(one, other) == {
        "a": {0: Position(10), 1: Position(5)},
        "b": {0: Position(3)},
    }
    assert furthest(one, {"a": {0: Position(9)}}) is one
    assert lowest([], {}) == {}


def test_the_version_of_the_record_is_the_one_that_tables_already_have() -> None:
    assert properties(PROGRESS)["ingestd.v"] == "2"


def test_a_record_names_the_branch_for_which_it_was_written() -> None:
    record = next_record(None, PIPELINE, TableStep(), "fix")
    properties = encode_properties("p", record, encode_pipeline(PIPELINE))
    assert decode_properties("p", properties, "here") == record
    copied = next_record(record, PIPELINE, TableStep())
    properties = encode_properties("p", copied, encode_pipeline(PIPELINE))
    assert "branch" not in properties[property_names("p")[1]]
    assert decode_properties("p", properties, "here") == copied
