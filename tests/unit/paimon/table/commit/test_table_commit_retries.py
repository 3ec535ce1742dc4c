"""One budget and one deadline for a commit, whatever its tries fail of."""

import time

import pytest

from ingestd.errors import CommitConflictError, CommitUnknownError
from ingestd.paimon.table.commit.table_commit import Retries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import snapshot_ids
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.metadata_tables import append, message, metadata_table, with_io


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, which are not waited but pass on the clock."""
    waits: list[float] = []
    begin = time.monotonic()
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(time, "monotonic", lambda: begin + sum(waits))
    return waits


def quiet(**options: str) -> FileStoreTable:
    named = {f"commit.{name.replace('_', '-')}": value for name, value in options.items()}
    return metadata_table(options=named)


def test_waits_double_up_to_the_longest_and_there_are_so_many(slept: list[float]) -> None:
    retries = Retries(
        quiet(max_retries="5", min_retry_wait="10 ms", max_retry_wait="50 ms").options
    )
    assert [retries.wait() for _ in range(7)] == [True] * 5 + [False] * 2
    least = [0.010, 0.020, 0.040, 0.050, 0.050]
    assert all(low <= found <= low * 1.2 for low, found in zip(least, slept, strict=True))


def test_no_retry_begins_that_would_end_after_the_deadline(slept: list[float]) -> None:
    table = quiet(max_retries="1000", min_retry_wait="1 s", max_retry_wait="1 h", timeout="30 s")
    retries = Retries(table.options)
    while retries.wait():
        pass
    assert 14 < sum(slept) <= 30
    assert len(slept) < 10


def test_lost_races_and_unclear_answers_share_one_budget(slept: list[float]) -> None:
    """A store that answers nothing between rivals: two loops of the same length multiplied."""
    table = quiet(max_retries="6", min_retry_wait="1 ms")
    numbers = iter(range(100))

    def rival() -> None:
        append(table, "them", next(numbers), message(f"r{next(numbers)}"))

    # Each snapshot is refused three times without an answer, then another process makes it.
    issues = [
        issue
        for index in range(1, 20)
        for issue in (
            ValidationIssue("try_write_atomic", f"/snapshot-{index}", times=3),
            ValidationIssue("try_write_atomic", f"/snapshot-{index}", first=4, action=rival),
        )
    ]
    racing = FaultyFileIO(table.io, issues)
    with pytest.raises((CommitConflictError, CommitUnknownError)):
        append(with_io(table, racing), "us", 1, message("a"))
    tries = racing.operations("try_write_atomic", "/snapshot-")
    assert len(tries) == 7
    assert len(slept) == 6
    assert snapshot_ids(table.io, table.paths) == [1]


def test_a_silent_store_is_asked_no_longer_than_the_deadline(slept: list[float]) -> None:
    table = quiet(max_retries="1000", timeout="1 min")
    mute = FaultyFileIO(table.io, [ValidationIssue("try_write_atomic", "/snapshot-", times=10**6)])
    with pytest.raises(CommitUnknownError):
        append(with_io(table, mute), "us", 1, message("a"))
    assert sum(slept) <= 60
