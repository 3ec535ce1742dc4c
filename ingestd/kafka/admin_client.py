"""Questions to brokers that may be away for a moment, and what to say when no answer comes.

Who is not let in is told so at once; who only waits, waits to the end of his time.
"""

import time
from concurrent.futures import TimeoutError as NoAnswerYet
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # ClusterMetadata is public
    AdminClient,
    ClusterMetadata,
)

from ingestd.errors import SourceError, SourceSilentError
from ingestd.kafka.auth_errors import ClientErrors, explain, refused_properties
from ingestd.kafka.consumers import LOG
from ingestd.kafka.properties import KafkaSource, admin_properties

PAUSE_SECONDS = 0.1
_FIRST_PATIENCE = 2.0
_MOST_PATIENCE = 8.0
_LISTEN_SECONDS = 1.0
_SILENT = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.BROKER_NOT_AVAILABLE,
    }
)
"""What is said of brokers that are not there."""

_T = TypeVar("_T")
_R = TypeVar("_R", covariant=True)


class Future(Protocol[_R]):
    """An answer to come."""

    def result(self, timeout: float) -> _R:
        """The answer; TimeoutError if it does not come in time, KafkaException if it is not one."""


class Asking:
    """An admin client of one source, with `seconds` for each question.

    Raises ConfigError for properties that cannot be used. A question raises SourceSilentError when
    no one answers, and SourceError for an answer that is not one, or when brokers do not let us in.
    """

    def __init__(self, source: KafkaSource, seconds: float) -> None:
        self._source = source
        self._client_errors = ClientErrors(source)
        self._answered = False
        self.seconds = seconds
        properties: dict[str, Any] = {
            **admin_properties(source),
            "error_cb": self._client_errors.note,
        }
        with refused_properties(source):
            self._open: AdminClient | None = AdminClient(properties, logger=LOG)

    @property
    def client(self) -> AdminClient:
        """The client, for the next question: what was said before an answer counts no more."""
        client = self._polled()
        if self._answered:
            self._client_errors.forget()
            self._answered = False
        return client

    def close(self) -> None:
        """Let go of the brokers; nothing is asked any more."""
        self._open = None  # no other process holds the client, which ends with its last reference

    def metadata(self) -> ClusterMetadata:
        """All topics and brokers."""
        client = self.client
        end = time.monotonic() + self.seconds
        patience = _FIRST_PATIENCE
        while True:
            left = max(end - time.monotonic(), PAUSE_SECONDS)
            try:
                return self._took(client.list_topics(timeout=min(patience, left)))
            except KafkaException as error:
                self._check_let_in("topics", error)
                if not is_silence(error) or time.monotonic() + PAUSE_SECONDS > end:
                    raise self.unanswered("topics", error) from error
            patience = min(2 * patience, _MOST_PATIENCE)
            time.sleep(PAUSE_SECONDS)

    def result(self, what: str, future: Future[_T]) -> _T:
        """The answer to a question that was asked."""
        end = time.monotonic() + self.seconds
        while True:
            left = max(end - time.monotonic(), 0)
            try:
                return self._took(future.result(min(_LISTEN_SECONDS, left)))
            except NoAnswerYet as error:
                self._check_let_in(what, error)
                if left <= _LISTEN_SECONDS:
                    raise self.unanswered(what, error) from error
            except KafkaException as error:
                self._check_let_in(what, error)
                raise self.unanswered(what, error) from error

    def unanswered(self, what: str, error: Exception) -> SourceError:
        """The error for a question without an answer."""
        reason = error.args[0].str() if isinstance(error, KafkaException) else "no answer"
        source = self._source
        said = self._client_errors.newest
        message = (
            f"source {source.name}: {source.bootstrap} did not tell about {what}: {reason}; is it "
            "the right address, and is the broker up?"
        )
        if said is not None:
            message += f" The client says: {explain(source, said)}"
        return SourceSilentError(message) if is_silence(error) else SourceError(message)

    def _took(self, answer: _T) -> _T:
        self._answered = True
        return answer

    def _polled(self) -> AdminClient:
        if self._open is None:
            raise SourceError(f"source {self._source.name}: its client is closed")
        self._open.poll(0)
        return self._open

    def _check_let_in(self, what: str, error: Exception) -> None:
        self._polled()
        rejection_reason = self._client_errors.rejection_reason
        if rejection_reason is not None:
            reason = explain(self._source, rejection_reason)
            raise SourceError(f"source {self._source.name}, {what}: {reason}") from error


def is_silence(error: BaseException | None) -> bool:
    """Whether an error says that no one answers."""
    if isinstance(error, KafkaException):
        return error.args[0].code() in _SILENT
    return isinstance(error, NoAnswerYet)
