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
from ingestd.paimon.table.metadata.index_paths import index_path
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


def written_messages(
    table: FileStoreTable, messages: Iterable[CommitMessage]
) -> tuple[CommitMessage, ...]:
    """Return all messages of an iterator that writes their files; after an error, delete the files.

    The iterator deletes the files of the message that it fails to yield.
    """
    written: list[CommitMessage] = []
    try:
        written.extend(messages)
    except BaseException:
        delete_written(table, written)
        raise
    return tuple(written)


def commit_rewrite(
    table: FileStoreTable,
    committable: ManifestCommittable,
    *,
    state: TableState,
    now_ms: int,
    commit_user: str | None = None,
    abort_files: Callable[[], None] | None = None,
) -> CommitResult:
    """Commit changes that were planned on `state`, as `commit_user` (None: a new user).

    If the commit fails with an IngestdError, except after a CommitUnknownError, `abort_files` is
    called before it is raised (None: the files of the messages are deleted). `now_ms` is the time
    of the snapshot. Raises CommitConflictError, CommitUnknownError, LockUnavailableError, and the
    other errors of `commit`.
    """
    user = str(uuid.uuid4()) if commit_user is None else commit_user
    try:
        return commit(table, user, committable, state=state, now_ms=now_ms)
    except CommitUnknownError:
        raise
    except IngestdError:
        if abort_files is None:
            delete_written(table, committable.messages)
        else:
            abort_files()
        raise


def delete_written(table: FileStoreTable, messages: Iterable[CommitMessage]) -> None:
    """Delete the data, changelog and index files of messages that will not be committed.

    Failures are logged, not raised.
    """
    for message in messages:
        values = table.partition_values(message.partition)
        written = (*message.new_files, *message.changelog_files, *message.compact_after)
        delete_uncommitted_files(table, values, message.bucket, written)
        for entry in message.new_index_files:
            table.io.delete_quietly(index_path(table, entry))
