"""Every error ingestd raises on purpose; the class tells what the supervisor does.

    IngestdError                    exit 1
    ├── ConfigError                 exit 2   stop before anything starts
    ├── RetryableError                       restart the query with backoff, within a budget
    │   ├── SourceError             exit 3   Kafka did not answer as it should
    │   │   └── SourceSilentError   exit 3   no one answers there: waited out, outside the budget
    │   ├── LogChangedError         exit 3   a log lost or replaced records: judged at the start
    │   ├── StorageError            exit 4   the warehouse did not answer as it should
    │   │   └── DiskFullError       exit 4   a disk has no room: waited out, outside the budget
    │   ├── WorkerLostError         exit 1   a worker was killed, or had no more memory
    │   ├── CommitConflictError     exit 4   other writers won every try; nothing of ours landed
    │   └── CommitUnknownError      exit 4   may have landed: read back, delete nothing
    └── FatalError                           a person has to look
        ├── OffsetLostError         exit 3   a range is no longer in the log
        ├── FormatError             exit 4   a file of the table is not what the specification says
        ├── UnsupportedError        exit 4   the table uses what ingestd does not implement
        ├── ProgressLostError       exit 4   a table does not say how far it got, but should
        ├── SchemaConflictError     exit 5   a schema change that the table cannot take
        ├── OffsetGapError          exit 5   the batch starts after what the table has
        ├── PolicyStopError         exit 5   a configured limit stopped the pipeline
        └── FencedError             exit 6   another daemon of this pipeline has taken over

Messages say what, where (table, file, topic, partition, offset) and the way out.
"""

import errno


class IngestdError(Exception):
    """Base of all; carries one message, so that it survives pickling between processes."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[type["IngestdError"], tuple[str]]:
        return type(self), (self.message,)


class ConfigError(IngestdError):
    """The configuration or the command line cannot be used as given."""

    exit_code = 2


class RetryableError(IngestdError):
    """May go away by itself: the supervisor restarts the query within its budget."""


class SourceError(RetryableError):
    """Kafka did not answer as it should."""

    exit_code = 3


class SourceSilentError(SourceError):
    """No one answers there: the supervisor waits it out, however long it takes."""


class LogChangedError(SourceError):
    """A log no longer has what a batch was to read: the next start judges it by the policy."""


class StorageError(RetryableError):
    """The warehouse did not answer as it should."""

    exit_code = 4


class DiskFullError(StorageError):
    """A disk, or a quota, is full: the supervisor waits it out, however long it takes."""


class WorkerLostError(RetryableError):
    """A worker process was killed, or took more memory than it may have."""


def storage_error(message: str, cause: OSError) -> StorageError:
    """Return the error for a file that could not be used, by why: a full disk is one of its own."""
    kind = DiskFullError if cause.errno in (errno.ENOSPC, errno.EDQUOT) else StorageError
    return kind(message)


def has_full_disk(error: BaseException | None) -> bool:
    """Return whether an error, or what led to it, is a full disk."""
    while error is not None and not isinstance(error, DiskFullError):
        error = error.__cause__
    return error is not None


class CommitConflictError(RetryableError):
    """Other writers won every try; nothing of this commit is visible."""

    exit_code = 4


class CommitUnknownError(RetryableError):
    """The commit may have landed; its files must not be deleted."""

    exit_code = 4


class FatalError(IngestdError):
    """Needs a person; the daemon stops."""


class OffsetLostError(FatalError):
    """A range of offsets is no longer in the log."""

    exit_code = 3


class FormatError(FatalError):
    """A file of a table is not what the specification says; the message names the file."""

    exit_code = 4


class UnsupportedError(FatalError):
    """The table uses an option or a type that is not implemented; the message names it."""

    exit_code = 4


class ProgressLostError(FatalError):
    """A table does not say how far it got, although it should."""

    exit_code = 4


class SchemaConflictError(FatalError):
    """A schema change that the table cannot take."""

    exit_code = 5


class OffsetGapError(FatalError):
    """A batch starts after the offsets that the table already has."""

    exit_code = 5


class PolicyStopError(FatalError):
    """A configured limit stopped the pipeline."""

    exit_code = 5


class FencedError(FatalError):
    """Another daemon of this pipeline has taken over."""

    exit_code = 6
