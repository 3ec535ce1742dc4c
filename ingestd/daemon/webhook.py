"""Deliver events to a webhook, in order, in a separate thread.

An event is sent again until the receiver accepts or refuses it, or the process ends. The queue is
bounded: new events are dropped while it is full. It is not stored: a new process starts empty.
"""

import logging
import random
import ssl
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Literal
from urllib.parse import urlsplit

from ingestd import metrics
from ingestd.daemon.notices import CONTENT_TYPE, CloudEvent, signature_headers
from ingestd.errors import ConfigError
from ingestd.http_request import one_line, send

_LOG = logging.getLogger(__name__)
_CAPACITY = 1000
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0
_REQUEST_SECONDS = 10.0
_TRIED_AGAIN = frozenset({401, 403, 404, 408, 425, 429})
"""Client errors that may be temporary, or end when the receiver is reconfigured."""

Outcome = Literal["sent", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """The URL of a receiver, and the key that signs requests, or None to send them unsigned.

    `ca_location` is a file with trusted CA certificates; None uses the certificates of the system.
    `first_wait` is the wait in seconds before an event is sent again; it doubles up to a minute. At
    most `capacity` events are queued.
    """

    url: str = field(repr=False)  # may contain a secret
    key: bytes | None = field(default=None, repr=False)
    ca_location: str | None = None
    first_wait: float = _FIRST_WAIT
    capacity: int = _CAPACITY

    @property
    def host(self) -> str:
        """The host and port of the URL, for messages; the whole URL may contain a secret."""
        return urlsplit(self.url).netloc


class Webhook:
    """A queue of events and the thread that sends them; thread-safe.

    Creating it raises ConfigError if the file of certificates cannot be used. `clock` returns
    seconds since 1970.
    """

    def __init__(self, settings: WebhookSettings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._tls = _tls(settings)
        self._waiting: deque[CloudEvent] = deque()
        self._changed = threading.Condition()
        self._end: float | None = None
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def offer(self, event: CloudEvent) -> None:
        """Queue an event, or drop it if the queue is full; never waits for the receiver."""
        with self._changed:
            is_full = len(self._waiting) >= self._settings.capacity
            if not is_full:
                self._waiting.append(event)
                self._changed.notify()
        if is_full:
            _drop(event, "queue-full")

    def close(self, seconds: float) -> None:
        """Send queued events for at most `seconds`, then drop the rest.

        The thread ends after the request in progress.
        """
        with self._changed:
            self._end = time.monotonic() + seconds
            self._changed.notify()
        self._thread.join(seconds)
        with self._changed:
            left = list(self._waiting)
            self._waiting.clear()
        for event in left:
            _drop(event, "stopped")

    def _run(self) -> None:
        attempt = 0
        while (event := self._next()) is not None:
            outcome = self._send(event)
            if outcome == "failed":
                self._pause(attempt)
                attempt += 1
                continue
            attempt = 0
            with self._changed:
                if self._waiting and self._waiting[0] is event:
                    self._waiting.popleft()
            if outcome == "refused":
                _drop(event, "refused")
            else:
                metrics.record_notice_sent(event.type)

    def _next(self) -> CloudEvent | None:
        """Wait for an event and return it, without removing it from the queue.

        Returns None if the webhook closes and the queue is empty or the time is over.
        """
        with self._changed:
            while not self._waiting and self._end is None:
                self._changed.wait()
            is_over = self._end is not None and time.monotonic() >= self._end
            return None if is_over or not self._waiting else self._waiting[0]

    def _pause(self, attempt: int) -> None:
        """Wait before the next attempt; once the webhook closes, at most for `first_wait`."""
        first = self._settings.first_wait
        seconds = min(first * 2.0 ** min(attempt, 20), _LONGEST_WAIT)
        with self._changed:
            self._changed.wait_for(
                lambda: self._end is not None,
                seconds * (1 + random.uniform(0, 0.2)),  # noqa: S311  (no secret)
            )
            end = self._end
        if end is not None:
            time.sleep(max(min(first, end - time.monotonic()), 0))

    def _send(self, event: CloudEvent) -> Outcome:
        settings, body = self._settings, event.body()
        headers = {"Content-Type": CONTENT_TYPE}
        if settings.key is not None:
            headers |= signature_headers(settings.key, event.id, int(self._clock()), body)
        request = urllib.request.Request(settings.url, body, headers, method="POST")  # noqa: S310  (checked: http, https)
        try:
            answer = send(request, _REQUEST_SECONDS, 0, self._tls)
        except (OSError, HTTPException) as error:
            return self._note_failure(event, one_line(str(error)))
        if 200 <= answer.status < 300:
            return "sent"
        self._note_failure(event, f"status {answer.status}")
        redirect_or_server_error = 300 <= answer.status < 400 or 500 <= answer.status < 600
        is_retried = redirect_or_server_error or answer.status in _TRIED_AGAIN
        return "failed" if is_retried else "refused"

    def _note_failure(self, event: CloudEvent, reason: str) -> Outcome:
        context = {"host": self._settings.host, "type": event.type, "why": reason}
        _LOG.warning("notice_not_delivered", extra={"ctx": context})
        return "failed"


def _drop(event: CloudEvent, reason: str) -> None:
    metrics.record_notice_dropped(reason)
    context = {"type": event.type, "subject": event.subject, "reason": reason}
    _LOG.warning("notice_dropped", extra={"ctx": context})


def _tls(settings: WebhookSettings) -> ssl.SSLContext | None:
    if not settings.url.startswith("https:"):
        return None
    try:
        return ssl.create_default_context(cafile=settings.ca_location)
    except (OSError, ValueError) as error:
        raise ConfigError(f"notices: 'ssl-ca-location' cannot be used: {error}") from error
