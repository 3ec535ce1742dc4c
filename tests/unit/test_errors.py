import errno
import pickle

import pytest

from ingestd import errors
from ingestd.errors import (
    CommitUnknownError,
    DiskFullError,
    FatalError,
    IngestdError,
    RetryableError,
    StorageError,
    has_full_disk,
    storage_error,
)

CLASSES = [
    variable
    for variable in vars(errors).values()
    if isinstance(variable, type) and issubclass(variable, IngestdError)
]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_survives_the_way_between_processes(kind: type[IngestdError]) -> None:
    error = pickle.loads(pickle.dumps(kind("table a.b: offset 3")))
    assert type(error) is kind
    assert error.message == "table a.b: offset 3"
    assert str(error) == error.message


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ConfigError", 2),
        ("SparkMasterError", 2),
        ("SparkSettingError", 2),
        ("JvmLostError", 1),
        ("SourceError", 3),
        ("OffsetLostError", 3),
        ("StorageError", 4),
        ("CommitUnknownError", 4),
        ("UnsupportedError", 4),
        ("SchemaConflictError", 5),
        ("OffsetGapError", 5),
        ("FencedError", 6),
    ],
)
def test_exit_codes_are_those_that_are_documented(name: str, code: int) -> None:
    assert getattr(errors, name).exit_code == code


def test_no_error_is_both_retried_and_fatal() -> None:
    both = [k for k in CLASSES if issubclass(k, RetryableError) and issubclass(k, FatalError)]
    assert both == []


def test_a_full_disk_is_an_error_of_its_own() -> None:
    full = storage_error("cannot write /w", OSError(errno.ENOSPC, "full"))
    quota = storage_error("cannot write /w", OSError(errno.EDQUOT, "quota"))
    other = storage_error("cannot write /w", OSError(errno.EROFS, "read-only"))
    assert [type(one) for one in (full, quota, other)] == [
        DiskFullError, DiskFullError, StorageError
    ]  # fmt: skip
    unknown = CommitUnknownError("perhaps")
    unknown.__cause__ = full
    assert [has_full_disk(one) for one in (full, unknown, other, None)] == [
        True, True, False, False
    ]  # fmt: skip
