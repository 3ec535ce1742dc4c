"""A pool of consumers for each process; a consumer serves one reader at a time.

Connecting costs far more than reading a small range, so a worker keeps its consumers open. A forked
process does not use the consumers of its parent, because their threads do not exist in the child.
"""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ingestd.kafka.auth_errors import ClientErrors, explain, refused_properties
from ingestd.kafka.native_reader import NativeKafkaReader, native_kafka
from ingestd.kafka.properties import KafkaSource, consumer_properties
from ingestd.kafka.python_reader import PythonReader
from ingestd.kafka.records import Reader
from ingestd.kafka.tokens import token_function, with_token_function

LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class PooledConsumer:
    """A consumer and the latest errors of its client."""

    reader: Reader
    client_errors: ClientErrors

    def listen(self) -> None:
        """Add to `client_errors` the errors that the client has reported since the last call."""
        self.client_errors.extend(self.reader.problems())

    def error_clause(self, source: KafkaSource) -> str:
        """Return the newest error with its explanation, as a clause to append to a message.

        The clause begins with a semicolon. It is empty if there was no error.
        """
        newest = self.client_errors.newest
        return "" if newest is None else f"; the client reports: {explain(source, newest)}"


_idle: dict[tuple[int, str, bool], list[PooledConsumer]] = {}


@contextmanager
def borrow_consumer(source: KafkaSource, *, headers: bool = False) -> Iterator[PooledConsumer]:
    """Yield a consumer of the source's cluster without an assignment, from the pool or a new one.

    The consumer returns to the pool at the end of the block. After an error it is closed instead,
    so that the next reader starts with a new consumer. With `headers`, it also reads the headers of
    records. Raises ConfigError for invalid properties, and SourceError if no token could be
    fetched.
    """
    key = (os.getpid(), json.dumps(source.to_document(), sort_keys=True), headers)
    idle = _idle.setdefault(key, [])
    try:
        pooled = idle.pop()  # several threads may borrow at the same time
    except IndexError:
        pooled = PooledConsumer(_connect(source, headers), ClientErrors(source))
    else:
        pooled.listen()
        pooled.client_errors.forget()
    try:
        yield pooled
    except BaseException:
        pooled.reader.close()
        raise
    pooled.reader.unassign()
    idle.append(pooled)


def close_consumers() -> None:
    """Close the idle consumers of this process."""
    for key in [key for key in _idle if key[0] == os.getpid()]:
        for pooled in _idle.pop(key):
            pooled.reader.close()


def _connect(source: KafkaSource, headers: bool) -> Reader:
    properties = consumer_properties(source)
    native = native_kafka()
    with refused_properties(source):
        if native is None or headers:
            return PythonReader(with_token_function(source, properties), headers=headers)
        return NativeKafkaReader(*native, properties, token_function(source))
