"""The errors that ingestd raises, with exit codes; the supervisor decides by their class.

    IngestdError                    exit 1
    ├── ConfigError                 exit 2   stop before anything starts
    │   ├── ArgumentError           exit 2   an argument of the library; also a ValueError
    │   ├── SparkMasterError        exit 2   the Spark master does not accept the pipeline
    │   └── SparkSettingError       exit 2   Spark does not start with its settings
    ├── RetryableError                       restart the query with backoff, within a budget
    │   ├── SourceError             exit 3   a request to Kafka or a registry failed
    │   │   ├── SourceSilentError   exit 3   no broker responds: retried, see below
    │   │   └── LogChangedError     exit 3   a log lost or replaced records: the next start decides
    │   ├── StorageError            exit 4   an operation on the warehouse failed
    │   │   ├── DiskFullError       exit 4   a disk or a quota is full: retried without limit
    │   │   └── LockUnavailableError exit 4  the lock of a table could not be requested
    │   ├── WorkerLostError         exit 1   a worker process was killed or ran out of memory
    │   ├── CommitConflictError     exit 4   every attempt lost to other writers; nothing committed
    │   └── CommitUnknownError      exit 4   may be committed: check later, delete nothing
    └── FatalError                           the daemon stops; an operator must act
        ├── JvmLostError            exit 1   Spark's JVM has ended: start the daemon again
        ├── OffsetLostError         exit 3   a range of offsets is no longer in the log
        ├── FormatError             exit 4   a file of a table violates the specification
        ├── UnsupportedError        exit 4   a table uses an unsupported option or type
        ├── ProgressLostError       exit 4   a table has lost its progress record
        ├── SchemaConflictError     exit 5   a schema change that the table does not support
        ├── OffsetGapError          exit 5   a batch starts after the end of the table's offsets
        ├── SecretLookupError       exit 2   a process cannot look up a secret
        ├── PolicyStopError         exit 5   a configured limit stopped the pipeline
        └── FencedError             exit 6   another daemon runs this pipeline

After all sources have responded once, restarts after a SourceSilentError are not limited; before,
an address may be wrong. Packages define subclasses of their own where they raise them.

Messages contain the problem, its location (table, file, topic, partition, offset) and a resolution.
"""

import errno


class IngestdError(Exception):
    """The base class of all errors of ingestd.

    An error has only a message, so that it can be pickled.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[type["IngestdError"], tuple[str]]:
        return type(self), (self.message,)


class ConfigError(IngestdError):
    """The configuration or the command line cannot be used as given."""

    exit_code = 2


class ArgumentError(ConfigError, ValueError):
    """An argument of `ingestd.paimon` cannot be used as given."""


class SparkMasterError(ConfigError):
    """The master of `spark.master` does not respond, or does not accept the pipeline."""


class SparkSettingError(ConfigError):
    """Spark does not start with the settings of the section `spark`."""


class RetryableError(IngestdError):
    """An error that may be temporary: the supervisor restarts the query within its budget."""


class SourceError(RetryableError):
    """A request to Kafka or to a schema registry failed; the query is restarted."""

    exit_code = 3


class SourceSilentError(SourceError):
    """No broker of a source responds, or no schema registry or token endpoint.

    The supervisor retries without limit once all sources have responded since the daemon started.
    """


class LogChangedError(SourceError):
    """A log lost or replaced records that a batch needs.

    The next start applies the source's policy `on-offset-out-of-range`.
    """


class StorageError(RetryableError):
    """An operation on the warehouse failed; the query is restarted."""

    exit_code = 4


class DiskFullError(StorageError):
    """A disk or a quota is full; the supervisor retries without limit."""


class LockUnavailableError(StorageError):
    """The catalog did not respond to the request for a table's lock; nothing was committed.

    A lock that other writers hold for too long is a CommitConflictError.
    """


class WorkerLostError(RetryableError):
    """A worker process was killed or exceeded its memory limit."""


def storage_error(message: str, cause: OSError) -> StorageError:
    """Convert an OSError to a StorageError, or to a DiskFullError if a disk or a quota is full."""
    kind = DiskFullError if cause.errno in (errno.ENOSPC, errno.EDQUOT) else StorageError
    return kind(message)


def has_full_disk(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes (`raise ... from`), is a DiskFullError.

    Returns False for None.
    """
    while error is not None and not isinstance(error, DiskFullError):
        error = error.__cause__
    return error is not None


class CommitConflictError(RetryableError):
    """Every attempt to commit lost to another writer; nothing of the commit is visible."""

    exit_code = 4


class CommitUnknownError(RetryableError):
    """It is unknown whether a commit has succeeded; the files of the commit must not be deleted."""

    exit_code = 4


class FatalError(IngestdError):
    """An error that an operator must resolve; the daemon stops."""


class JvmLostError(FatalError):
    """Spark's JVM has ended; only a new process can start another one."""


class OffsetLostError(FatalError):
    """A range of offsets is no longer in the log."""

    exit_code = 3


class FormatError(FatalError):
    """A file of a table violates the specification; the message names the file."""

    exit_code = 4


class UnsupportedError(FatalError):
    """The table uses an unsupported option or type; the message names it."""

    exit_code = 4


class ProgressLostError(FatalError):
    """A table has lost its progress record, so its offsets are unknown."""

    exit_code = 4


class SchemaConflictError(FatalError):
    """A source changed its schema in a way that the table does not support."""

    exit_code = 5


class OffsetGapError(FatalError):
    """A batch starts after the offset at which the table continues: records between are missing."""

    exit_code = 5


class SecretLookupError(FatalError):
    """A process cannot look up a secret to which the configuration refers."""

    exit_code = 2


class PolicyStopError(FatalError):
    """A configured policy or limit stopped the pipeline, for example for rejected records."""

    exit_code = 5


class FencedError(FatalError):
    """Another process runs this pipeline, or this process is no longer its leader."""

    exit_code = 6
