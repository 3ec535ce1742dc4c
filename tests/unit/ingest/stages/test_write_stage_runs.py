"""Files of one commit where a task's rows are too many for one run."""

from itertools import pairwise

import pytest

from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.table.metadata.file_store_scan import delta_entries
from ingestd.paimon.table.read.incremental_read import read_changelog
from tests.support.ingest_rig import Rig
from tests.support.json_changes import UPDATE_AFTER, Change, record

pytestmark = pytest.mark.usefixtures("json_changes")
KEYS = 5


def interleaved(**options: str) -> Rig:
    """Five keys that are updated in turn through two topic partitions, in runs of a few rows."""
    options = {"bucket": "1", **options}
    rig = Rig(defaults=TableSettings(options=options), overrides={"write_buffer_size": 150})
    for position in range(48):
        change = Change({"id": position % KEYS, "n": position}, UPDATE_AFTER, position=position)
        rig.produce(record(change), partition=position % 2)
    rig.run()
    return rig


def files_of(rig: Rig) -> list[DataFileMeta]:
    """The files of the newest commit, in its order."""
    state = rig.states["lake.orders"]
    assert state.snapshot is not None
    return [entry.file for entry in delta_entries(rig.tables["lake.orders"], state.snapshot)]


@pytest.mark.parametrize("options", [{}, {"merge-engine": "first-row"}, {"sequence.field": "n"}])
def test_files_of_a_commit_share_no_sequence_numbers_and_come_in_their_order(
    options: dict[str, str],
) -> None:
    """Readers of changes take them one after the other, and the last row of a key as the newest."""
    files = files_of(interleaved(**options))
    assert len(files) > 2
    for one, two in pairwise(files):
        assert one.max_sequence_number < two.min_sequence_number


def test_the_newest_row_of_a_key_is_the_last_that_readers_of_changes_see() -> None:
    rig = interleaved()
    changes = read_changelog(rig.tables["lake.orders"]).to_pylist()
    assert len(changes) > KEYS
    newest = [{"id": key, "n": max(range(key, 48, KEYS))} for key in range(KEYS)]
    assert rig.rows("orders") == newest
    assert {row["id"]: row["n"] for row in changes} == {row["id"]: row["n"] for row in newest}
