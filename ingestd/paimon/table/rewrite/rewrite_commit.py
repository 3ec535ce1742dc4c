"""Commit the files of a rewrite, or delete them; plan again if other writers committed first.

Only an IngestdError means that nothing was committed. After other exceptions, for example
KeyboardInterrupt, the files stay: if no snapshot refers to them, they are orphan files.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
"""

import logging
import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

from ingestd.errors import CommitConflictError, CommitUnknownError, IngestdError
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.files.data_files import delete_uncommitted_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

_LOG = logging.getLogger(__name__)
_TRIES = 3
_T = TypeVar("_T")


def retry_lost(table: FileStoreTable, event: str, rewrite: Callable[[], _T]) -> _T:
    """Call `rewrite` and return its result; call it again after a CommitConflictError.

    `rewrite` plans and commits a rewrite. The third CommitConflictError is raised; before, `event`
    is logged as a warning each time.
    """
    turn = 0
    while True:
        turn += 1
        try:
            return rewrite()
        except CommitConflictError as error:
            if turn == _TRIES:
                raise
            _LOG.warning(event, extra={"ctx": {"table": table.name, "error": str(error)}})


def commit_rewrite(
    table: FileStoreTable,
    committable: ManifestCommittable,
    abort_files: Callable[[], None],
    *,
    state: TableState,
    now_ms: int,
    commit_user: str | None = None,
) -> CommitResult:
    """Commit changes that were planned on `state`, as `commit_user` (None: a new user).

    If the commit fails with an IngestdError, `abort_files` is called before it is raised, except
    after a CommitUnknownError. `now_ms` is the time of the snapshot. Raises CommitConflictError,
    CommitUnknownError, LockUnavailableError, and the other errors of `commit`.
    """
    user = str(uuid.uuid4()) if commit_user is None else commit_user
    try:
        return commit(table, user, committable, state=state, now_ms=now_ms)
    except CommitUnknownError:
        raise
    except IngestdError:
        abort_files()
        raise


def delete_written(table: FileStoreTable, messages: Iterable[CommitMessage]) -> None:
    """Delete the data and changelog files of messages that will not be committed; never raises."""
    for message in messages:
        values = table.partition_values(message.partition)
        written = (*message.new_files, *message.changelog_files, *message.compact_after)
        delete_uncommitted_files(table, values, message.bucket, written)
