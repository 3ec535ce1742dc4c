"""Every changelog producer with every merge engine: our changes are Java's, row for row."""

import itertools
from pathlib import Path
from random import Random

import pytest

from ingestd.paimon.table.read.changelog_read import read_changelog
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


STEPS: list[How] = ["auto", "auto", "none", "full", "auto"]
FULL_STEPS: list[How] = ["full", "none", "full", "none", "full"]
"""When all is compacted is up to sizes of files else, which are not quite those of Java."""


def _is_a_table(engine: str, producer: str, *, vectors: bool, deduplicated: bool) -> bool:
    """What Java refuses to create, or where an option would change nothing, is left out."""
    if engine == "first-row":
        return producer == "lookup" and not vectors
    if producer == "full-compaction":
        return not vectors
    if producer == "lookup":
        return True
    return not deduplicated and (producer == "input" or engine == "deduplicate")


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
    options = {"bucket": "1", "changelog-producer": producer, **LEVELS, **ENGINES[engine]}
    options |= (VECTORS if vectors else {}) | (DEDUPLICATED if deduplicated else {})
    random = Random(str(options))
    twins = CompactTwins(oracle, tmp_path, COLUMNS, options)
    kinds = [0, 0, 0, 3] if engine in RETRACTS else [0]
    for how in FULL_STEPS if producer == "full-compaction" else STEPS:
        rows = [
            {
                "k": key,
                "v": random.choice(["a", "b", None]),
                "s": random.choice([0, 1, 2, None]),
                "_kind": random.choice(kinds),
            }
            for key in random.sample(range(16), 7)
        ]
        twins.step(rows, how)
    own, java = twins.changes()
    assert own == java
    assert own
    found = read_changelog(twins.table).drop(["_snapshot"]).to_pylist()
    assert found == [{name: row[name] for name in found[0]} for row in own]
