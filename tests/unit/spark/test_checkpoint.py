"""Which checkpoint a pipeline runs on: the tables decide, and a damaged one is left alone."""

import json
from pathlib import Path

import pytest

from ingestd.errors import FormatError
from ingestd.kafka.ranges import BatchOffsets, Offsets, encode
from ingestd.paimon.io.local import LocalFileIO
from ingestd.spark.checkpoint import Generation, choose_generation, read_batch_offsets

IO = LocalFileIO(sync=False)


def _at(offset: int) -> Offsets:
    return {"s": {"t": {0: offset}}}


def _plan(root: Path, batch: int, start: int, until: int, *, committed: bool = True) -> None:
    for folder in ("offsets", "commits"):
        (root / "gen-0" / folder).mkdir(parents=True, exist_ok=True)
    document = json.dumps(encode(BatchOffsets(_at(start), _at(until))))
    (root / "gen-0" / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{document}")
    if committed:
        text = 'v1\n{"nextBatchWatermarkMs":0}'
        (root / "gen-0" / "commits" / str(batch)).write_text(text)


def _chosen(root: Path, tables: Offsets) -> Generation:
    return choose_generation(IO, str(root), tables)


def test_the_first_generation_starts_from_the_tables(tmp_path: Path) -> None:
    chosen = _chosen(tmp_path, _at(7))
    assert (chosen.path, chosen.seed) == (f"{tmp_path}/gen-0", _at(7))


@pytest.mark.parametrize("table_offset", [20, 35])
def test_a_checkpoint_at_or_behind_the_tables_is_continued(
    table_offset: int, tmp_path: Path
) -> None:
    _plan(tmp_path, 0, 0, 10)
    _plan(tmp_path, 1, 10, 20)
    assert _chosen(tmp_path, _at(table_offset)).path.endswith("gen-0")


def test_a_checkpoint_ahead_of_the_tables_gives_way_to_a_new_one(tmp_path: Path) -> None:
    _plan(tmp_path, 0, 0, 10)
    _plan(tmp_path, 1, 10, 20)
    chosen = _chosen(tmp_path, _at(10))
    assert (chosen.path, chosen.seed) == (f"{tmp_path}/gen-1", _at(10))
    assert (tmp_path / "gen-0" / "offsets" / "1").exists()


def test_a_planned_batch_is_not_ahead_as_long_as_spark_has_not_committed_it(
    tmp_path: Path,
) -> None:
    _plan(tmp_path, 0, 0, 10)
    _plan(tmp_path, 1, 10, 20, committed=False)
    assert _chosen(tmp_path, _at(10)).path.endswith("gen-0")


def test_a_damaged_checkpoint_is_replaced_and_kept(tmp_path: Path) -> None:
    _plan(tmp_path, 0, 0, 10)
    damaged = tmp_path / "gen-0" / "offsets" / "0"
    damaged.write_text(damaged.read_text()[:-9])
    chosen = _chosen(tmp_path, _at(10))
    assert chosen.path.endswith("gen-1")
    assert str(damaged) in chosen.reason
    assert damaged.exists()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("metadata", ""),
        ("metadata", '{"name": 1}'),
        ("offsets/0", None),
        ("offsets/0", "v1\n{}\n"),
        ("offsets/1", ""),
        ("offsets/1", "\0" * 60),
        ("offsets/1", "v2\n{}\n{}"),
        ("offsets/1", None),
        ("commits/1", ""),
        ("commits/1", "v1\n[]"),
    ],
)
def test_whatever_spark_could_not_read_makes_a_new_generation_from_the_tables(
    file: str, content: str | None, tmp_path: Path
) -> None:
    _plan(tmp_path, 0, 0, 10)
    _plan(tmp_path, 1, 10, 20)
    (tmp_path / "gen-0" / "metadata").write_text('{"id":"x"}')
    assert _chosen(tmp_path, _at(20)).path.endswith("gen-0")
    damaged = tmp_path / "gen-0" / file
    damaged.unlink()
    if content is not None:
        damaged.write_text(content)
    chosen = _chosen(tmp_path, _at(20))
    assert (chosen.path, chosen.seed) == (f"{tmp_path}/gen-1", _at(20))
    assert f"{tmp_path}/gen-0/" in chosen.reason


def test_what_a_death_at_the_very_first_batch_left_makes_a_new_generation(tmp_path: Path) -> None:
    for folder in ("offsets", "commits"):
        (tmp_path / "gen-0" / folder).mkdir(parents=True)
    assert _chosen(tmp_path, {}) == Generation(f"{tmp_path}/gen-0", {}, "continued")
    (tmp_path / "gen-0" / "offsets" / ".0.3ee52c25.tmp").write_text("")
    chosen = _chosen(tmp_path, {})
    assert (chosen.path, chosen.seed) == (f"{tmp_path}/gen-1", {})
    assert ".0.3ee52c25.tmp" in chosen.reason


def test_a_commit_that_is_missing_only_repeats_its_batch(tmp_path: Path) -> None:
    _plan(tmp_path, 0, 0, 10)
    _plan(tmp_path, 1, 10, 20)
    (tmp_path / "gen-0" / "commits" / "1").unlink()
    assert _chosen(tmp_path, _at(20)).path.endswith("gen-0")


def test_offsets_of_a_batch_that_was_never_planned_are_a_format_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="batch 3"):
        read_batch_offsets(IO, str(tmp_path / "gen-0"), 3)
