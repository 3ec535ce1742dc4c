import pickle

import pytest

from ingestd import errors
from ingestd.errors import FatalError, IngestdError, RetryableError

CLASSES = [
    one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, IngestdError)
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
