"""The settings of a Kafka source, and the properties of its clients."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

from ingestd.errors import ConfigError
from ingestd.kafka.offset_ranges import TopicOffsets

StartupMode = Literal[
    "earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"
]
BoundedMode = Literal["unbounded", "latest-offset", "timestamp", "specific-offsets"]
OutOfRangePolicy = Literal["fail", "earliest", "latest"]

_OURS = {
    "auto.offset.reset": "startup-mode and on-offset-out-of-range",
    "enable.auto.commit": "the offsets kept in the tables",
    "enable.auto.offset.store": "the offsets kept in the tables",
    "enable.partition.eof": "the way ranges are read",
    "isolation.level": "read_committed, which exactly-once needs",
    "key.deserializer": "the format of the source",
    "value.deserializer": "the format of the source",
}
_FUNCTIONS = frozenset(
    {"error_cb", "logger", "on_commit", "on_delivery", "rebalance_cb", "stats_cb", "throttle_cb"}
)
TOKEN_FUNCTION = "oauth_cb"  # noqa: S105  (the name of a property)
TOKEN_CONFIG = "sasl.oauthbearer.config"  # noqa: S105  (the name of a property)
TOKEN_EXTENSIONS = "sasl.oauthbearer.extensions"  # noqa: S105  (the name of a property)
_METHOD = "sasl.oauthbearer.method"
_TOKENS_FROM = "sasl.oauthbearer.metadata.authentication.type"
_AWS, _MSK = "aws_iam", "AWS_MSK_IAM"
_AWS_PACKAGES = {_AWS: "boto3", _MSK: "aws_msk_iam_sasl_signer"}
_TOKEN_WAYS = (
    f"set {_METHOD}: oidc with sasl.oauthbearer.token.endpoint.url, "
    "sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret, or for roles of AWS with "
    f"{_TOKENS_FROM}: {_AWS} and {TOKEN_CONFIG}: region=...,audience=...; for Amazon MSK set "
    f"sasl.mechanism: {_MSK}"
)
_MECHANISMS = ("sasl.mechanism", "sasl.mechanisms")
_MSK_HOST = re.compile(r"\.kafka(?:-serverless)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com")
_REGION = re.compile(r"region=(?P<region>[a-z0-9-]+)")
_BOOTSTRAP = "bootstrap.servers"

# With the default back-off of 1000 ms a fetch that finds its queue full sleeps for a second.
# Larger fetches and queues do not read more records per second, but fetch more records past the end
# of a range: with 16 MiB of queue a quarter of the client's work.
_TUNED: Mapping[str, str] = {
    "fetch.queue.backoff.ms": "2",
    "fetch.wait.max.ms": "10",
    "fetch.message.max.bytes": str(2 << 20),
    "queued.max.messages.kbytes": str(4 << 10),
    "reconnect.backoff.max.ms": "2000",
    "log_level": "2",  # relevant messages arrive as errors too
    "topic.metadata.propagation.max.ms": "5000",
}
_FIXED: Mapping[str, str] = {
    "auto.offset.reset": "error",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "isolation.level": "read_committed",
    "allow.auto.create.topics": "false",
}
_CONSUMER_ONLY = (
    "fetch.",
    "queued.",
    "group.",
    "session.",
    "heartbeat.",
    "max.poll.",
    "check.crcs",
    "receive.message.max.bytes",
)


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """Topics of one cluster that are read with the same settings.

    Either `topics` lists names, or `topic_pattern` is a regular expression that a whole name must
    match; topics named in `topic_exclude` are not read. `properties` are Kafka client properties,
    unchanged. `startup_mode` determines where reading begins at the first start of the source,
    `bounded_mode` where reading ends. Timestamps (ms since 1970) and offsets apply to the modes
    "timestamp" and "specific-offsets". If a log no longer has offsets that are to be read,
    `on_offset_out_of_range` stops the pipeline ("fail"), or continues at the "earliest" or "latest"
    one.
    """

    name: str
    topics: tuple[str, ...]
    topic_pattern: str | None = None
    topic_exclude: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets
    startup_mode: StartupMode = "earliest-offset"
    on_offset_out_of_range: OutOfRangePolicy = "fail"
    startup_timestamp: int | None = None
    startup_offsets: TopicOffsets = field(default_factory=dict)
    bounded_mode: BoundedMode = "unbounded"
    bounded_timestamp: int | None = None
    bounded_offsets: TopicOffsets = field(default_factory=dict)

    @property
    def is_bounded(self) -> bool:
        """Whether reading ends at an offset that the bounded mode determines."""
        return self.bounded_mode != "unbounded"

    @property
    def group(self) -> str:
        """The consumer group to which offsets are committed for lag tools.

        It is `group.id` of the properties, by default `ingestd-` and the name of the source. With
        the startup mode "group-offsets", reading begins at the offsets of this group.
        """
        return self.properties.get("group.id", f"ingestd-{self.name}")

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers as configured; empty if they are missing."""
        return self.properties.get(_BOOTSTRAP, "")

    @property
    def protocol(self) -> str:
        """The security protocol in capitals, such as `SASL_SSL`; by default `PLAINTEXT`."""
        return self.properties.get("security.protocol", "plaintext").upper()

    @property
    def mechanism(self) -> str:
        """The SASL mechanism as configured, by default `GSSAPI`.

        It is returned even if `protocol` does not use SASL.
        """
        given = (self.properties[name] for name in _MECHANISMS if name in self.properties)
        return next(given, "GSSAPI")

    @property
    def uses_tokens(self) -> bool:
        """Whether `mechanism` uses tokens, which expire; `protocol` is not considered."""
        return self.mechanism in {"OAUTHBEARER", _MSK}

    @property
    def signer(self) -> Literal["aws_iam", "AWS_MSK_IAM"] | None:
        """The kind of AWS tokens that are computed in Python, or None if the source uses none."""
        if self.mechanism == _MSK:
            return "AWS_MSK_IAM"
        return "aws_iam" if self.properties.get(_TOKENS_FROM) == _AWS else None

    def selects(self, topic: str) -> bool:
        """Return whether the source reads this topic: it is named or matches, and not excluded."""
        if topic in self.topic_exclude:
            return False
        if self.topic_pattern is None:
            return topic in self.topics
        return re.fullmatch(self.topic_pattern, topic) is not None

    def selected(self, topics: Iterable[str]) -> list[str]:
        """Return those of the `topics` that the source reads, sorted."""
        return sorted(topic for topic in topics if self.selects(topic))

    def to_document(self) -> dict[str, Any]:
        """Return a JSON document of all fields, including properties that may be secret."""
        return {**asdict(self), "properties": dict(self.properties)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "KafkaSource":
        """Build a source from the result of `to_document`."""
        lists = {name: tuple(document[name]) for name in ("topics", "topic_exclude")}
        offsets = {
            name: {
                topic: {int(partition): offset for partition, offset in partitions.items()}
                for topic, partitions in document[name].items()
            }
            for name in ("startup_offsets", "bounded_offsets")
        }
        return cls(**{**document, **lists, **offsets})


def consumer_properties(source: KafkaSource) -> dict[str, str]:
    """Return the properties of a consumer: the user's, and properties that ingestd requires.

    Raises ConfigError if a property of the user is missing or not allowed, or if authentication by
    tokens is not possible.
    """
    _refuse_properties(source)
    return {**_TUNED, "group.id": source.group, **_client_properties(source), **_FIXED}


def admin_properties(source: KafkaSource) -> dict[str, str]:
    """Return the properties of an admin client: the user's, except properties only for consumers.

    Raises ConfigError if a property of the user is missing or not allowed, or if authentication by
    tokens is not possible.
    """
    _refuse_properties(source)
    user_properties = {
        name: value
        for name, value in _client_properties(source).items()
        if not name.startswith(_CONSUMER_ONLY)
    }
    return {"reconnect.backoff.max.ms": "2000", "log_level": "2", **user_properties}


def producer_properties(source: KafkaSource) -> dict[str, str]:
    """Return the properties of an idempotent producer: the user's, and those that ingestd requires.

    Properties only for consumers are left out. By default, keys select partitions as in Java's
    producer. Raises ConfigError if a property of the user is missing or not allowed, or if
    authentication by tokens is not possible.
    """
    return {
        "linger.ms": "5",
        "message.max.bytes": str(1_000_000_000),  # the limit of the topic applies
        "partitioner": "murmur2_random",
        **admin_properties(source),
        "acks": "all",
        "enable.idempotence": "true",
    }


def check_properties(source: KafkaSource) -> None:
    """Check the properties of the user, without connecting to a broker.

    Raises ConfigError for a missing address of brokers, for a property that ingestd sets itself or
    that is a Python function, and for authentication by tokens that cannot be obtained. The message
    does not name the source.
    """
    if not source.bootstrap:
        raise ConfigError(f"{_BOOTSTRAP} is missing: set it to HOST:PORT,...")
    for name, instead in _OURS.items():
        if name in source.properties:
            raise ConfigError(f"{name} cannot be set, it follows from {instead}")
    functions = sorted(_FUNCTIONS & source.properties.keys())
    if functions:
        raise ConfigError(f"{functions[0]} is a Python function, which a file cannot contain")
    if TOKEN_FUNCTION in source.properties:
        raise ConfigError(f"{TOKEN_FUNCTION} is a Python function: {_TOKEN_WAYS}")
    if source.signer is not None:
        _check_signer(source)
    elif source.protocol.startswith("SASL") and source.uses_tokens:
        _check_tokens(source.properties)


def msk_region(source: KafkaSource) -> str:
    """Return the AWS region of an Amazon MSK cluster.

    The region is stated in `sasl.oauthbearer.config`. If this property is not set, the region is
    taken from the names that MSK gives to brokers. Raises ConfigError if it is not found.
    """
    stated = source.properties.get(TOKEN_CONFIG)
    region = (
        _MSK_HOST.search(source.bootstrap) if stated is None else _REGION.fullmatch(stated.strip())
    )
    if region is None:
        raise ConfigError(
            f"sasl.mechanism {_MSK} needs the region of the cluster: set {TOKEN_CONFIG}: "
            "region=eu-central-1"
        )
    return region["region"]


def _client_properties(source: KafkaSource) -> dict[str, str]:
    """Return the user's properties in terms of librdkafka, where MSK's mechanism is OAUTHBEARER."""
    if source.signer != _MSK:
        return dict(source.properties)
    rest = {
        name: value
        for name, value in source.properties.items()
        if name not in {*_MECHANISMS, TOKEN_CONFIG}
    }
    return {**rest, "sasl.mechanism": "OAUTHBEARER"}


def _refuse_properties(source: KafkaSource) -> None:
    """Check properties as `check_properties`, with the name of the source in the error."""
    try:
        check_properties(source)
    except ConfigError as error:
        raise ConfigError(f"sources.{source.name}.kafka: {error.message}") from error


def _check_signer(source: KafkaSource) -> None:
    """Raise ConfigError if properties or packages for computing the tokens of AWS are missing."""
    service = source.signer
    if service == _MSK:
        if source.protocol != "SASL_SSL":
            raise ConfigError(f"sasl.mechanism {_MSK} needs security.protocol: SASL_SSL")
        if _METHOD in source.properties:
            raise ConfigError(f"sasl.mechanism {_MSK} has tokens of its own: remove {_METHOD}")
        msk_region(source)
    package = _AWS_PACKAGES[str(service)]
    if find_spec(package) is None:
        raise ConfigError(f"{service} needs the package {package}: pip install 'ingestd[aws]'")


def _check_tokens(properties: Mapping[str, str]) -> None:
    """Raise ConfigError if no property states how to get tokens, which clients would wait for."""
    oidc = properties.get(_METHOD, "").lower() == "oidc"
    if not oidc and properties.get("enable.sasl.oauthbearer.unsecure.jwt") != "true":
        raise ConfigError(f"sasl.mechanism OAUTHBEARER needs a source of tokens: {_TOKEN_WAYS}")
