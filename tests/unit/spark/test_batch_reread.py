"""Truncates among several topic partitions, by real batches: the table ends as its source."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import PolicyStopError
from ingestd.ingest.recovery.truncate_lookup import truncate_lookup
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.truncate_policy import TruncatePolicy
from ingestd.kafka.isolated_fetch import Unreadable
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.spark import set_aside
from tests.support.truncated_source import (
    PARTITIONS,
    TABLE,
    TOPIC,
    Cluster,
    Pipeline,
    TruncatedSource,
)


def behind(source: TruncatedSource) -> None:
    """Rows from before and after a truncate that waits in the first partition."""
    for key in (1, 2, 3):
        source.put(key)
    source.truncate(0)
    source.put(4)
    source.put(5)


def test_a_truncate_that_lags_takes_only_what_was_there_before_it(tmp_path: Path) -> None:
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source)
    behind(source)
    pipeline.run(1, 1, 0)
    pipeline.run(1, 2, 2)
    assert sorted(pipeline.rows()) == [1, 2, 3, 4, 5]
    pipeline.run(2, 2, 2)
    assert pipeline.rows() == source.rows
    # What came before the last snapshot that was older than the truncate is not read again.
    assert [(one.partition, one.start, one.until) for one in pipeline.fetched] == [
        (0, 1, 2),
        (1, 1, 2),
        (2, 0, 2),
    ]
    assert pipeline.topics.checked == pipeline.fetched, "whose topics have to be the same as before"


def test_a_truncate_takes_no_rows_from_a_table_that_is_ahead_of_its_batch(tmp_path: Path) -> None:
    """Another table lags after a crash, so a smaller batch reads some of the records again."""
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source)
    source.put(0)
    source.put(2)
    pipeline.run(1, 0, 1)
    source.truncate(1)
    source.put(2)
    source.put(5)
    pipeline.run(1, 0, 3)
    pipeline.reached = [1, 0, 1]
    pipeline.run(1, 1, 2)
    pipeline.run(1, 1, 3)
    assert pipeline.rows() == source.rows == {2: 3, 5: 4}


def test_a_truncate_that_leaves_a_new_table_without_rows_is_remembered(tmp_path: Path) -> None:
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source)
    for key in (0, 1, 2):
        source.put(key)
    source.truncate(0)
    source.put(3)
    pipeline.run(2, 0, 0)
    assert pipeline.rows() == {}
    pipeline.run(3, 1, 1)
    assert pipeline.rows() == source.rows == {3: 4}


def test_a_truncate_is_refused_where_older_snapshots_are_gone(tmp_path: Path) -> None:
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source)
    behind(source)
    pipeline.run(1, 1, 0)
    pipeline.run(1, 2, 2)
    table = pipeline.table_registry.tables[TABLE].table
    table.io.delete_quietly(table.paths.snapshot(1))
    with pytest.raises(PolicyStopError, match="have expired"):
        pipeline.run(2, 2, 2)


POLICIES = {
    "fail": TableSettings(truncates=TruncatePolicy(on_refused="fail")),
    "ignore": TableSettings(truncates=TruncatePolicy(on_refused="ignore")),
}


def expired(tmp_path: Path, policy: str) -> Pipeline:
    """A truncate is about to be read, and the log has not all that came after its snapshot."""
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source, POLICIES[policy])
    behind(source)
    pipeline.run(1, 1, 0)
    pipeline.run(1, 2, 2)
    source.begins[2] = 1
    return pipeline


def test_a_truncate_is_refused_where_records_have_left_the_log(tmp_path: Path) -> None:
    pipeline = expired(tmp_path, "fail")
    with pytest.raises(
        PolicyStopError, match=rf"offset 0 .* {TOPIC}/2 of .* begins at 1; .*on-ambiguous-truncate"
    ):
        pipeline.run(2, 2, 2)
    pipeline.source.begins[2] = 0
    pipeline.run(2, 2, 2)
    assert pipeline.rows() == pipeline.source.rows


def test_a_truncate_whose_records_have_left_the_log_goes_by_the_policy(tmp_path: Path) -> None:
    pipeline = expired(tmp_path, "ignore")
    pipeline.run(2, 2, 2)
    assert sorted(pipeline.rows()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("policy", ["fail", "ignore"])
def test_a_truncate_is_refused_where_a_record_cannot_be_read_again(
    tmp_path: Path, policy: str
) -> None:
    pipeline = expired(tmp_path, policy)
    pipeline.source.begins[2], pipeline.unreadable = 0, {(2, 0)}
    pipeline.runs = 0
    if policy == "fail":
        with pytest.raises(PolicyStopError, match=rf"{TOPIC}/2 .* cannot be read at offset 0: no"):
            pipeline.run(2, 2, 2)
        return
    pipeline.run(2, 2, 2)
    assert sorted(pipeline.rows()) == [1, 2, 3, 4, 5]
    assert pipeline.runs == 4, "find the truncate, read again, find it again, leave it out"


def test_a_truncate_is_refused_where_a_record_that_is_read_again_kills_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = expired(tmp_path, "ignore")
    pipeline.source.begins[2], pipeline.killing = 0, {(2, 0)}
    sought: list[OffsetRange] = []

    def found(_: KafkaSource, ranges: list[OffsetRange], __: int) -> list[Unreadable]:
        sought.extend(ranges)
        return [Unreadable(ranges[-1], "takes all memory")]

    monkeypatch.setattr(set_aside, "find_unreadable", found)
    pipeline.run(2, 2, 2)
    assert sorted(pipeline.rows()) == [1, 2, 3, 4, 5]
    assert [(read.partition, read.start, read.until) for read in sought] == [(1, 1, 2), (2, 0, 2)]


def test_a_truncate_whose_records_are_nowhere_any_more_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = expired(tmp_path, "fail")
    monkeypatch.setattr(Cluster, "topic_ids", lambda *_: {})
    with pytest.raises(PolicyStopError, match="no longer exists"):
        pipeline.run(2, 2, 2)


def test_a_source_that_was_taken_out_has_no_logs(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, TruncatedSource())
    settings = replace(pipeline.settings(), sources={})
    assert truncate_lookup(pipeline.table_registry, settings, {}).begins([("src", TOPIC, 2)]) == {}


@pytest.mark.parametrize("topic", [None, "letters"])
def test_what_is_read_again_has_one_dead_letter_in_the_table(
    tmp_path: Path, topic: str | None
) -> None:
    """Into a topic it is sent again: its delivery is at least once."""
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source, letters_to=topic)
    behind(source)
    source.garbage(1)
    source.garbage(2)
    pipeline.run(1, 1, 0)
    pipeline.run(1, 3, 3)
    source.garbage(1)
    before = [(1, 2), (2, 2)]
    assert (pipeline.sent_letters if topic else pipeline.letters()) == before
    pipeline.run(2, 4, 3)
    assert [one.start for one in pipeline.fetched] == [1, 1, 0]
    after = [*before, (1, 2), (1, 3), (2, 2)] if topic else [(1, 2), (1, 3), (2, 2)]
    assert (pipeline.sent_letters if topic else pipeline.letters()) == after
    assert pipeline.rows() == source.rows


UNORDERED = TableSettings()
ORDERED = TableSettings(ordering="source-position")
"""A table that was created without this ordering rejects all rows."""


@pytest.mark.parametrize("rejects", ["the table", "the limit of bytes"])
def test_a_record_that_is_rejected_only_when_it_is_read_again_is_a_dead_letter(
    tmp_path: Path, rejects: str
) -> None:
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source, UNORDERED)
    for key in range(3):
        source.put(key)
    source.garbage(2)
    pipeline.run(1, 0, 0)
    pipeline.run(1, 1, 2)
    assert (sorted(pipeline.rows()), pipeline.letters()) == ([0, 1, 2], [(2, 1)])
    if rejects == "the table":
        pipeline.table = ORDERED
    else:
        pipeline.max_record_bytes = 30
    pipeline.max_rejected = 2
    pipeline.roll_back(1)
    pipeline.run(1, 1, 2)
    assert sorted(pipeline.rows()) == [0]
    assert pipeline.letters() == [(1, 0), (2, 0), (2, 1)]
    pipeline.open()
    pipeline.run(1, 1, 2)
    assert pipeline.letters() == [(1, 0), (2, 0), (2, 1)]


def test_rows_of_a_partition_that_had_no_position_yet_are_older_than_a_truncate(
    tmp_path: Path,
) -> None:
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source)
    source.put(0)
    source.put(1)
    source.truncate(0)
    source.put(3)
    pipeline.run(3, 0, 0)
    pipeline.run(3, 1, 0)
    assert pipeline.rows() == source.rows


@pytest.mark.parametrize("seed", range(6))
def test_the_table_ends_as_its_source_however_partitions_lag(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source)
    source.put(0)
    for _ in range(8):
        for _ in range(chance.randrange(1, 12)):
            source.act(chance)
        until = [
            chance.randint(pipeline.reached[index], len(source.logs[index]))
            for index in range(PARTITIONS)
        ]
        pipeline.run(*until)
    pipeline.run(*map(len, source.logs))
    assert pipeline.rows() == source.rows
