"""An admin client that waits for unreachable brokers, and explains why a request failed.

A request fails after its timeout if the brokers are unreachable, and much earlier if they reject
the credentials.
"""

import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # ClusterMetadata is public
    AdminClient,
    ClusterMetadata,
)

from ingestd.errors import SourceError, SourceSilentError
from ingestd.kafka.auth_errors import ClientErrors, explain, refused_properties
from ingestd.kafka.consumer_pool import LOG
from ingestd.kafka.properties import KafkaSource, admin_properties
from ingestd.kafka.tokens import with_token_function

PAUSE_SECONDS = 0.1
_FIRST_PATIENCE = 2.0
"""Seconds that the first attempt of a request for metadata waits; the next ones twice as long."""
_MOST_PATIENCE = 8.0
"""The most seconds that one attempt of a request for metadata waits."""
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
"""Codes of errors that mean an unreachable broker."""

_T = TypeVar("_T")
_R = TypeVar("_R", covariant=True)


class Future(Protocol[_R]):
    """The future result of a request to the admin client, as the client library returns it."""

    def result(self, timeout: float) -> _R:
        """Return the result, and wait for it for at most `timeout` seconds.

        Raises TimeoutError if it has not arrived by then, KafkaException if the request failed.
        """


class AdminConnection:
    """An admin client of one source, with a timeout of `seconds` for each request.

    Raises ConfigError for invalid properties, and SourceError if no token could be fetched. A
    request raises SourceSilentError if the brokers do not respond, and SourceError if it fails, if
    the brokers reject the client, or after `close`.
    """

    def __init__(self, source: KafkaSource, seconds: float) -> None:
        self._source = source
        self._client_errors = ClientErrors(source)
        self._answered = False
        self.seconds = seconds
        properties = admin_properties(source)
        with refused_properties(source):
            settings = with_token_function(source, properties)
            settings["error_cb"] = self._client_errors.note
            self._open: AdminClient | None = AdminClient(settings, logger=LOG)

    @property
    def client(self) -> AdminClient:
        """The client for the next request.

        If the previous request had a response, the errors recorded so far are discarded.
        """
        client = self._polled()
        if self._answered:
            self._client_errors.forget()
            self._answered = False
        return client

    def close(self) -> None:
        """Close the connections; no request is possible afterwards."""
        self._open = None  # the client closes with its last reference

    def metadata(self) -> ClusterMetadata:
        """Return the metadata of the cluster with all its topics.

        While the brokers do not respond, the request is repeated until the timeout of the
        connection. The first attempt waits for 2 seconds, and each further one twice as long as the
        one before, up to 8.
        """
        client = self.client
        end = time.monotonic() + self.seconds
        patience = _FIRST_PATIENCE
        while True:
            left = max(end - time.monotonic(), PAUSE_SECONDS)
            try:
                return self._note_response(client.list_topics(timeout=min(patience, left)))
            except KafkaException as error:
                self._check_rejected("topics", error)
                if not is_unreachable(error) or time.monotonic() + PAUSE_SECONDS > end:
                    raise self.no_response_error("topics", error) from error
            patience = min(2 * patience, _MOST_PATIENCE)
            time.sleep(PAUSE_SECONDS)

    def result(self, what: str, future: Future[_T]) -> _T:
        """Wait until the timeout for the response to a request, and return it.

        Messages of errors describe the request by `what`, such as "topic orders".
        """
        end = time.monotonic() + self.seconds
        while True:
            left = max(end - time.monotonic(), 0)
            try:
                return self._note_response(future.result(min(_LISTEN_SECONDS, left)))
            except FutureTimeoutError as error:
                self._check_rejected(what, error)
                if left <= _LISTEN_SECONDS:
                    raise self.no_response_error(what, error) from error
            except KafkaException as error:
                self._check_rejected(what, error)
                raise self.no_response_error(what, error) from error

    def no_response_error(self, what: str, error: Exception) -> SourceError:
        """Build the error for a request for `what` that failed with `error`.

        Returns a SourceSilentError if the brokers are unreachable, or else a SourceError.
        """
        reason = error.args[0].str() if isinstance(error, KafkaException) else "no response"
        source = self._source
        newest = self._client_errors.newest
        message = (
            f"source {source.name}: {source.bootstrap} did not report {what}: {reason}; is it "
            "the right address, and is the broker up?"
        )
        if newest is not None:
            message += f" The client reports: {explain(source, newest)}"
        return SourceSilentError(message) if is_unreachable(error) else SourceError(message)

    def _note_response(self, response: _T) -> _T:
        self._answered = True
        return response

    def _polled(self) -> AdminClient:
        if self._open is None:
            raise SourceError(f"source {self._source.name}: its client is closed")
        self._open.poll(0)
        return self._open

    def _check_rejected(self, what: str, error: Exception) -> None:
        self._polled()
        rejection_reason = self._client_errors.rejection_reason
        if rejection_reason is not None:
            reason = explain(self._source, rejection_reason)
            raise SourceError(f"source {self._source.name}, {what}: {reason}") from error


def is_unreachable(error: BaseException | None) -> bool:
    """Return whether an error means that the brokers do not respond."""
    if isinstance(error, KafkaException):
        return error.args[0].code() in _SILENT
    return isinstance(error, FutureTimeoutError)
