"""Messages that explain connection and authentication errors of the Kafka client.

A message names the broker and what to check, such as properties of the source, but contains no
secrets. The client library reports only that a certificate could not be verified, so a separate TLS
handshake finds out why.
"""

import re
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection

from confluent_kafka import KafkaError, KafkaException

from ingestd.errors import ConfigError, SourceError
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.records import Problem

_KEPT = 8
_TOKEN_SECONDS = 5.0
_SASL = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
_DENIED = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)
_LASTING = frozenset({*_SASL, *_DENIED, KafkaError._SSL, KafkaError._FATAL})
_FROM_BROKER = re.compile(r"(?:\w+://)?(?P<address>[^/\s]+:\d+)/\w+: (?P<reason>.*)", re.DOTALL)
_NOTHING_MORE = re.compile(r" \(after \d+ms in state \w+\)|, \d+ identical error\(s\) suppressed")
_VALUE = re.compile(r"(beginning (?:at|with)|near)(:? ).*", re.DOTALL)
"""The client library repeats property values after these words."""
_WANTS_CERTIFICATE = ("alert bad certificate", "alert certificate required", "alert unknown ca")
_OTHER_PROTOCOL = (
    "connecting to a PLAINTEXT broker listener",
    "security.protocol",
    "wrong version number",
)
_SECONDS = 5.0


class ClientErrors:
    """The newest errors, at most 8, that the Kafka client of a source reported.

    `clock` returns a monotonic time in seconds.
    """

    def __init__(self, source: KafkaSource, clock: Callable[[], float] = time.monotonic) -> None:
        # A client that was idle for longer than its token is valid presents the expired token
        # before it fetches a new one.
        self._grace = _TOKEN_SECONDS if source.uses_tokens else 0.0
        self._clock = clock
        self._since: float | None = None
        self.problems: deque[Problem] = deque(maxlen=_KEPT)

    def note(self, error: KafkaError) -> None:
        """Record an error. This is the error callback of a client."""
        self.extend([Problem(error.code(), error.str())])

    def extend(self, problems: Iterable[Problem]) -> None:
        """Record errors that did not arrive through the error callback."""
        for problem in problems:
            self.problems.append(problem)
            if self._since is None and problem.code in _SASL:
                self._since = self._clock()

    def forget(self) -> None:
        """Discard all recorded errors."""
        self.problems.clear()
        self._since = None

    @property
    def rejection_reason(self) -> Problem | None:
        """The first recorded error that retries cannot resolve, or None.

        An example is an error for rejected credentials. If the source uses tokens, a rejection is
        returned only 5 seconds after the first, because the client may have used an expired token.
        """
        lasting = next((problem for problem in self.problems if _lasts(problem)), None)
        if lasting is not None and lasting.code in _SASL and self._since is not None:
            return lasting if self._clock() - self._since >= self._grace else None
        return lasting

    @property
    def newest(self) -> Problem | None:
        """The newest error, or None; "all brokers down" only if there are no other errors."""
        down = KafkaError._ALL_BROKERS_DOWN
        specific = [problem for problem in self.problems if problem.code != down] or list(
            self.problems
        )
        return specific[-1] if specific else None


@contextmanager
def refused_properties(source: KafkaSource) -> Iterator[None]:
    """Convert errors that a new client raises for invalid properties to ConfigError.

    ImportError and RuntimeError are raised by token providers written in Python. Raises SourceError
    if no token could be fetched, because a retry may succeed.
    """
    try:
        yield
    except SystemError as error:  # the library drops the original error or chains it
        raise SourceError(_no_token(source, error.__cause__)) from error
    except KafkaException as error:
        if error.args[0].code() in _SASL:
            raise SourceError(_no_token(source, error.__context__ or error.args[0])) from error
        raise ConfigError(f"sources.{source.name}.kafka: {error.args[0].str()}") from error
    except (ValueError, TypeError, ImportError, RuntimeError) as error:
        raise ConfigError(f"sources.{source.name}.kafka: {error}") from error


def explain(source: KafkaSource, problem: Problem) -> str:
    """Return an explanation of a client error and its remedy, as a clause of a message.

    For a certificate that could not be verified, this connects to the broker to find out why.
    """
    match = _FROM_BROKER.match(problem.text)
    address = match["address"] if match else source.bootstrap
    reason = _without_values(match["reason"] if match else problem.text)
    where = f"sources.{source.name}.kafka"
    if problem.code in _SASL:
        way_out = _sasl_way_out(source)
        return f"{address} rejected authentication by {_way(source)}: {reason}; {way_out}"
    if "certificate verify failed" in reason:
        return _certificate(source, address)
    if any(phrase in reason for phrase in _WANTS_CERTIFICATE):
        return (
            f"{address} rejected authentication by {_way(source)}: {reason}; it requires a "
            f"certificate that it trusts (mTLS): check ssl.certificate.location and "
            f"ssl.key.location of {where}"
        )
    if any(phrase in reason for phrase in _OTHER_PROTOCOL):
        return (
            f"{address} does not respond as one of {_way(source)}: {reason}; if the "
            f"broker is running, check security.protocol of {where}"
        )
    if problem.code in _DENIED:
        return f"{address} denies access: {reason}; grant this user the rights to read and describe"
    return f"{address} by {_way(source)}: {reason}"


def _no_token(source: KafkaSource, cause: object) -> str:
    why = f": {cause}" if cause else ""
    return f"{source.bootstrap} by {_way(source)}: no token{why}; {_sasl_way_out(source)}"


def _certificate(source: KafkaSource, address: str) -> str:
    issue = certificate_error(address, source.properties) or "it could not be verified"
    where = f"sources.{source.name}.kafka"
    way_out = f"set ssl.ca.location of {where} to the authority that signed it"
    if "expired" in issue or "not yet valid" in issue:
        way_out = "install a valid certificate on the broker, or correct the clock"
    elif "mismatch" in issue.lower():
        way_out = (
            f"connect to a name that it contains: bootstrap.servers of {where}, and the names "
        )
        way_out += "that the brokers advertise"
    return f"the certificate of {address} was refused by {_way(source)}: {issue}; {way_out}"


def _sasl_way_out(source: KafkaSource) -> str:
    where = f"sources.{source.name}.kafka"
    if not source.uses_tokens:
        return f"check sasl.username, sasl.password and sasl.mechanism of {where}"
    if source.signer is not None:
        return f"check sasl.oauthbearer.config of {where}, and the AWS role of this process"
    if source.properties.get("sasl.oauthbearer.method", "").lower() == "oidc":
        return f"check sasl.oauthbearer.token.endpoint.url and the client's secret in {where}"
    return f"check sasl.oauthbearer.config of {where}"


def _way(source: KafkaSource) -> str:
    """Return the security protocol, with the mechanism if it is SASL."""
    protocol = source.protocol
    return f"{protocol} {source.mechanism}" if protocol.startswith("SASL") else protocol


def _lasts(problem: Problem) -> bool:
    return problem.code in _LASTING or any(phrase in problem.text for phrase in _WANTS_CERTIFICATE)


def _without_values(reason: str) -> str:
    return _VALUE.sub(r"\1 ...", _NOTHING_MORE.sub("", reason)).strip()


def certificate_error(address: str, properties: Mapping[str, str]) -> str | None:
    """Return why the certificate at HOST:PORT fails verification, in OpenSSL's words.

    `properties` are the properties of the Kafka client. Returns None if the certificate is valid,
    or if it could not be checked, for example because the broker does not respond within 5 seconds.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        context = _context(properties)
        with (
            create_connection((host, int(port)), _SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (OSError, ValueError):  # the client library reports all other errors itself
        return None


def _context(properties: Mapping[str, str]) -> ssl.SSLContext:
    text, location = properties.get("ssl.ca.pem"), properties.get("ssl.ca.location")
    ca_path = Path(location) if location and location != "probe" else None
    is_folder = ca_path is not None and ca_path.is_dir()
    context = ssl.create_default_context(
        cadata=text,
        cafile=None if is_folder else ca_path,
        capath=ca_path if is_folder else None,
    )
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    return context
