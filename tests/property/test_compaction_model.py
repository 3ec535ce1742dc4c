"""Compaction as a model: what is chosen keeps the tree a tree, and readers see what was written."""

import dataclasses
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.spec.compaction_options import CompactionOptions, compaction_options
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.compact.universal_compaction import (
    CompactionPick,
    PlanningTime,
    RunSize,
    pick_runs,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.incremental_read import read_changelog
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put

SCHEMA = new_schema([("k", parse_type("INT"))], ["k"], [], {"bucket": "1"}, 0)
SIZES = st.integers(1, 10**6)


@st.composite
def planner_options(draw: st.DrawFn) -> CompactionOptions:
    trigger = draw(st.integers(2, 6))
    return dataclasses.replace(
        compaction_options(SCHEMA),
        trigger=trigger,
        num_levels=draw(st.integers(2, trigger + 3)),
        max_size_amplification=draw(st.sampled_from([0, 25, 200, 10_000])),
        size_ratio=draw(st.sampled_from([0, 1, 100])),
        forces_level_0=draw(st.booleans()),
    )


@st.composite
def trees(draw: st.DrawFn, max_level: int) -> list[RunSize]:
    levels = sorted(draw(st.sets(st.integers(1, max_level))))
    newest = [RunSize(0, size) for size in draw(st.lists(SIZES, max_size=8))]
    return newest + [RunSize(level, draw(SIZES)) for level in levels]


def compacted(runs: list[RunSize], choice: CompactionPick) -> list[RunSize]:
    size = sum(run.size for run in runs[: choice.count])
    return [RunSize(choice.output_level, size), *runs[choice.count :]]


@given(st.data(), planner_options())
def test_a_choice_leaves_a_tree(data: st.DataObject, options: CompactionOptions) -> None:
    top = options.num_levels - 1
    runs = data.draw(trees(top))
    choice = pick_runs(runs, top, options, PlanningTime(0, 0))
    if choice is None:
        assert len(runs) <= options.trigger or options.trigger < 2
        assert not (options.forces_level_0 and runs and runs[0].level == 0)
        return
    assert 1 <= choice.count <= len(runs)
    assert 1 <= choice.output_level <= top
    # Nothing picked comes from below the output, and nothing that stays is above it.
    assert all(run.level <= choice.output_level for run in runs[: choice.count])
    assert all(run.level > choice.output_level for run in runs[choice.count :])
    levels = [run.level for run in compacted(runs, choice)]
    assert levels == sorted(set(levels))


@given(st.lists(SIZES, min_size=1, max_size=60), planner_options())
def test_runs_never_pile_up(sizes: list[int], options: CompactionOptions) -> None:
    top, runs = options.num_levels - 1, list[RunSize]()
    for size in sizes:
        runs = [RunSize(0, size), *runs]
        choice = pick_runs(runs, top, options, PlanningTime(0, 0))
        if choice is not None:
            runs = compacted(runs, choice)
        assert len(runs) <= options.trigger
    assert sum(run.size for run in runs) == sum(sizes)


STEPS = st.lists(
    st.one_of(
        st.lists(
            st.tuples(st.integers(0, 12), st.integers(0, 99), st.booleans()),
            min_size=1,
            max_size=8,
        ),
        st.sampled_from(["auto", "full"]),
    ),
    max_size=14,
)
KINDS = st.sampled_from(
    [
        {},
        {"deletion-vectors.enabled": "true"},
        {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
        {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"},
        {"changelog-producer": "full-compaction"},
        {"merge-engine": "first-row"},
    ]
)


class Model:
    """The newest value of each key, and what of it may be seen."""

    def __init__(self, options: dict[str, str]) -> None:
        self.first = "merge-engine" in options
        self.hides = self.first or "deletion-vectors.enabled" in options
        self.live: dict[int, int] = {}
        self.seen: dict[int, int] = {}

    def write(self, changes: list[tuple[int, int, bool]]) -> list[dict[str, Any]]:
        for key, value, deleted in changes:
            if self.first:
                self.live.setdefault(key, value)
            elif deleted:
                self.live.pop(key, None)
            else:
                self.live[key] = value
        if not self.hides:
            self.compacted()
        return [
            {"k": k, "v": v, "_kind": 3 if deleted and not self.first else 0}
            for k, v, deleted in changes
        ]

    def compacted(self) -> None:
        self.seen = dict(self.live)


def seen(table: FileStoreTable) -> dict[int, int]:
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    return {row["k"]: row["v"] for row in map(json.loads, lines)}


def folded(table: FileStoreTable) -> dict[int, int]:
    """What a reader of the changes has in the end; each change must fit what was before."""
    rows: dict[int, int] = {}
    for change in read_changelog(table).to_pylist():
        key, kind = change["k"], change["rowkind"]
        if kind in ("-U", "-D"):
            assert rows.pop(key) == change["v"]
        else:
            assert key not in rows
            rows[key] = change["v"]
    return rows


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, KINDS, st.sampled_from(["2", "5"]), st.sampled_from(["1 kb", "128 mb"]))
def test_readers_see_what_was_written(
    steps: list[Any], kind: dict[str, str], trigger: str, target: str
) -> None:
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": trigger, **kind}
    columns = [("k", "INT"), ("v", "INT")]
    table = native_table(
        "/w", columns, keys=["k"], options={**options, "target-file-size": target},
        io=MemoryFileIO(),
    )  # fmt: skip
    model = Model(kind)
    for step in steps:
        if isinstance(step, list):
            put(table, model.write(step))
        else:
            compact_table(table, now_ms=NOW_MS, full=step == "full")
            model.compacted()
        assert seen(table) == model.seen
    assert verify(table) == []
    if "changelog-producer" in kind:
        compact_table(table, now_ms=NOW_MS, full=True)
        assert folded(table) == model.live
