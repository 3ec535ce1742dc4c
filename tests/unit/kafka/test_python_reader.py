"""What the reader by the Python client says when its client refuses."""

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from confluent_kafka import KafkaError, KafkaException

from ingestd.errors import SourceError
from ingestd.kafka import python_reader
from ingestd.kafka.python_reader import PythonReader


class Refusing:
    """A consumer that refuses everything."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def _refuse(self, *_: object) -> NoReturn:
        raise KafkaException(KafkaError(KafkaError._STATE, "no"))

    assign = unassign = consume = _refuse


@pytest.mark.parametrize(
    "ask",
    [
        lambda reader: reader.assign({("t", 0): 1}),
        lambda reader: reader.unassign(),
        lambda reader: reader.read(1, 0.0),
    ],
    ids=["assign", "unassign", "read"],
)
def test_what_the_client_refuses_is_an_error_of_the_source(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[Any], object]
) -> None:
    monkeypatch.setattr(python_reader, "Consumer", Refusing)
    with pytest.raises(SourceError, match="no"):
        ask(PythonReader({}, headers=False))
