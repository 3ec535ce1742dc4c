"""Any sequence of commits, from any states, against a model that is only a dictionary."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.errors import CommitConflictError
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, read_snapshot
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from tests.support.metadata_tables import (
    INT,
    NOW_MS,
    data_file,
    metadata_table,
    serialize_row,
)
from tests.support.metadata_tables import commit_imagined as commit

PARTITIONS = [serialize_row([INT], [value]) for value in (1, 2, 3)]
SMALL = {
    "manifest.merge-min-count": "3",
    "manifest.target-file-size": "3 kb",
    "manifest.full-compaction-threshold-size": "8 kb",
}

appends = st.tuples(st.just("append"), st.integers(0, 2), st.integers(0, 1), st.integers(1, 3))
compactions = st.tuples(st.just("compact"), st.integers(0, 2), st.integers(0, 1), st.just(0))
overwrites = st.tuples(st.just("overwrite"), st.integers(0, 2), st.integers(0, 1), st.just(0))
steps = st.tuples(
    st.one_of(appends, appends, appends, compactions, overwrites),
    st.sampled_from(["fresh", "kept"]),
    st.integers(0, 1),
)


@dataclass
class Model:
    """Live files by name, with partition and bucket."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    states: dict[int, TableState] = field(default_factory=dict)
    identifiers: dict[int, int] = field(default_factory=dict)
    made: int = 0

    def names(self, partition: bytes, bucket: int) -> list[str]:
        return [n for n, place in self.files.items() if place == (partition, bucket)]


def place(entry: ManifestEntry) -> tuple[str, tuple[bytes, int]]:
    return entry.file.file_name, (entry.partition, entry.bucket)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=1, max_size=25))
def test_the_table_holds_what_was_committed_whoever_knew_what(plan: list) -> None:
    table = metadata_table(partition_keys=("p",), options=SMALL)
    model = Model()
    for number, ((what, partition_number, bucket, files), knowledge, writer) in enumerate(plan):
        partition = PARTITIONS[partition_number]
        state = model.states.get(writer) if knowledge == "kept" else None
        state = load_state(table) if state is None else state
        new = [f"f{number}-{n}" for n in range(files or 1)]
        old = model.names(partition, bucket) if what == "compact" else []
        message = CommitMessage(
            partition, bucket, 2,
            new_files=tuple(map(data_file, new)) if what != "compact" else (),
            compact_before=tuple(data_file(n, level=n.count("c")) for n in old),
            compact_after=(data_file(f"{new[0]}c", level=1),) if old else (),
        )  # fmt: skip
        if what == "compact" and not old:
            continue
        identifier = model.identifiers.get(writer, 0) + 1
        result = commit(
            table, f"writer{writer}",
            ManifestCommittable(identifier, (message,), overwrite=what == "overwrite"),
            state=state, now_ms=NOW_MS,
        )  # fmt: skip
        assert result.status == "committed"
        model.identifiers[writer] = identifier
        model.states[writer] = result.state
        model.made += 1
        if what == "overwrite":
            model.files.clear()
        for name in old:
            del model.files[name]
        added = [f"{new[0]}c"] if what == "compact" else new
        model.files.update(dict.fromkeys(added, (partition, bucket)))
    snapshot = latest_snapshot(table.io, table.paths)
    live = dict(map(place, live_files(table, snapshot)))
    assert live == model.files
    for partition in PARTITIONS:
        found = dict(map(place, live_files(table, snapshot, partition_filter={partition})))
        assert found == {n: p for n, p in model.files.items() if p[0] == partition}
    total = 0
    for snapshot_id in range(1, model.made + 1):
        made = read_snapshot(table.io, table.paths, snapshot_id)
        total += made.delta_record_count or 0
        assert made.total_record_count == total
        assert sum(e.file.row_count for e in live_files(table, made)) == total
    assert total == len(model.files)


@given(st.integers(0, 5))
def test_a_compaction_planned_on_files_that_were_compacted_never_lands(rivals: int) -> None:
    table = metadata_table(options=SMALL)
    empty = load_state(table)
    partition = data_file("x").value_stats.min_values
    first = CommitMessage(partition, 0, 2, new_files=(data_file("a"),))
    state = commit(
        table, "w", ManifestCommittable(1, (first,)), state=empty, now_ms=NOW_MS
    ).state  # fmt: skip
    before = "a"
    for n in range(rivals):
        rival = CommitMessage(
            partition, 0, 2,
            compact_before=(data_file(before, level=before.count("c")),),
            compact_after=(data_file(f"{n}c", level=1),),
        )  # fmt: skip
        commit(
            table, "rival", ManifestCommittable(n + 1, (rival,)),
            state=load_state(table), now_ms=NOW_MS,
        )  # fmt: skip
        before = f"{n}c"
    ours = CommitMessage(
        partition, 0, 2,
        compact_before=(data_file("a"),), compact_after=(data_file("oursc", level=1),),
    )  # fmt: skip
    try:
        commit(table, "w", ManifestCommittable(2, (ours,)), state=state, now_ms=NOW_MS)
        landed = True
    except CommitConflictError:
        landed = False
    assert landed == (rivals == 0)
