"""Every changelog producer with every merge engine: our changes are Java's, row for row."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.incremental_read import read_changelog
from tests.support.compact_twins import CompactTwins, How
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

COLUMNS = [("k", "INT"), ("v", "STRING"), ("s", "INT")]
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "first-row": {"merge-engine": "first-row"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.s.aggregate-function": "sum"},
}
RETRACTS = ("deduplicate", "aggregation")
VECTORS = {"deletion-vectors.enabled": "true"}
DEDUPLICATED = {"changelog-producer.row-deduplicate": "true"}
LEVELS = {
    "num-sorted-run.compaction-trigger": "2",
    "compaction.max-size-amplification-percent": "5000",
}


ALL_OR_NOTHING = {**LEVELS, "compaction.max-size-amplification-percent": "0"}
"""Every compaction takes all files, whatever their sizes, which are not quite those of Java."""
STEPS: list[How] = ["auto", "auto", "none", "full", "auto"]


def _is_a_table(engine: str, producer: str, *, vectors: bool, deduplicated: bool) -> bool:
    """What Java refuses to create, or where an option would change nothing, is left out."""
    if deduplicated and producer in ("none", "input"):
        return False
    if engine == "first-row":
        return producer in ("none", "lookup") and not vectors
    return not (producer == "full-compaction" and vectors)


CASES = [
    (engine, producer, vectors, deduplicated)
    for engine, producer, vectors, deduplicated in itertools.product(
        ENGINES, ("none", "input", "lookup", "full-compaction"), (False, True), (False, True)
    )
    if _is_a_table(engine, producer, vectors=vectors, deduplicated=deduplicated)
]


@pytest.mark.parametrize(("engine", "producer", "vectors", "deduplicated"), CASES)
def test_changes_are_those_of_java(
    engine: str, producer: str, vectors: bool, deduplicated: bool, tmp_path: Path, oracle: Oracle
) -> None:
    levels = ALL_OR_NOTHING if producer == "full-compaction" else LEVELS
    options = {"bucket": "1", "changelog-producer": producer, **levels, **ENGINES[engine]}
    options |= (VECTORS if vectors else {}) | (DEDUPLICATED if deduplicated else {})
    random = Random(str(options))
    twins = CompactTwins(oracle, tmp_path, COLUMNS, options)
    for how in STEPS:
        twins.step(_rows(random, engine, random.sample(range(16), 7)), how)
    _check(twins)


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "first-row"])
def test_compactions_below_the_top_level_show_nothing(
    engine: str, tmp_path: Path, oracle: Oracle
) -> None:
    options = {"bucket": "1", "changelog-producer": "full-compaction", **LEVELS, **ENGINES[engine]}
    random = Random(engine)
    twins = CompactTwins(oracle, tmp_path, COLUMNS, options)
    twins.step(_rows(random, engine, range(20_000)), "full")
    told = len(twins.changes()[0])
    levels = set[int]()
    for _ in range(4):
        twins.step(_rows(random, engine, random.sample(range(30), 9)), "auto")
        live = live_files(twins.table, load_state(twins.table).snapshot)
        levels |= {entry.file.level for entry in live}
    assert levels == {0, 1, 2}
    assert len(twins.changes()[0]) == told
    twins.step(_rows(random, engine, range(5)), "full")
    _check(twins)


def _rows(random: Random, engine: str, keys: Iterable[int]) -> list[dict[str, Any]]:
    kinds = [0, 0, 0, 3] if engine in RETRACTS else [0]
    return [
        {
            "k": key,
            "v": random.choice(["a", "b", None]),
            "s": random.choice([0, 1, 2, None]),
            "_kind": random.choice(kinds),
        }
        for key in keys
    ]


def _check(twins: CompactTwins) -> None:
    own, java = twins.changes()
    assert own == java
    assert own
    found = read_changelog(twins.table).drop(["_snapshot"]).to_pylist()
    assert found == [{name: row[name] for name in found[0]} for row in own]
