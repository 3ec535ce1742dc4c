"""Import `--kafka_conf` of Paimon's CDC actions as the section of a source.

Properties of the Java client become those of librdkafka where equivalents exist.
"""

import re
from collections.abc import Iterable, Mapping

from ingestd.cdc.base import DATA_FORMATS, DEFAULT_FORMAT, describe_format
from ingestd.config.document import Path
from ingestd.config.import_notes import ImportNotes, Piece

_JAAS = re.compile(r"""(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;]+))""")
_CLIENT = "properties."
_PASSWORD = "${env:KAFKA_PASSWORD}"  # noqa: S105  (a reference, which keeps the password out)
_SAME = frozenset(
    {
        "bootstrap.servers",
        "check.crcs",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "heartbeat.interval.ms",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.ms",
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "security.protocol",
        "session.timeout.ms",
        "socket.connection.setup.timeout.ms",
        "ssl.cipher.suites",
    }
)
"""Properties with the same name in the Java client and in librdkafka."""
_RENAMED: Mapping[str, str] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "sasl.username": "sasl.username",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
}
_OURS: Mapping[str, str] = {
    "auto.offset.reset": "startup-mode and on-offset-out-of-range say where reading starts",
    "enable.auto.commit": "offsets are stored in the tables",
    "auto.commit.interval.ms": "offsets are stored in the tables",
    "isolation.level": "only committed records are ever read",
    "key.deserializer": "the format of the source reads keys",
    "value.deserializer": "the format of the source reads values",
    "partition.discovery.interval.ms": "every batch looks for new topics and partitions",
}
_READING: Mapping[str, str] = {
    "scan.topic-partition-discovery.interval": "every batch looks for new topics and partitions",
    "key.format": "keys are decoded by the format of the values",
    "connector": "Kafka is the only connector",
}
_DEFAULT_MODE = "group-offsets"
_STAND_IN = "CHANGE-ME"


def import_kafka_conf(conf: Mapping[str, str], source: Path, *, keep_secrets: bool) -> ImportNotes:
    """Import a source from `conf`, the values of `--kafka_conf` by name.

    `source` is the path of its section. The password becomes a reference to an environment
    variable, unless `keep_secrets` is set.
    """
    importer = _Kafka(conf, source, keep_secrets=keep_secrets)
    importer.run()
    return importer.imported


class _Kafka:
    """The import of one source; `_handled` has the names that are already imported or noted."""

    def __init__(self, conf: Mapping[str, str], source: Path, *, keep_secrets: bool) -> None:
        self.imported = ImportNotes()
        self._conf = conf
        self._source = source
        self._keep_secrets = keep_secrets
        self._handled: set[str] = set()

    def run(self) -> None:
        """Import all properties."""
        self._brokers()
        self._format()
        self._topics()
        self._start()
        self._secrets()
        for name in self._left():
            self._client(name) if name.startswith(_CLIENT) else self._other(name)

    def _argument(self, name: str) -> str:
        return f"--kafka_conf {name}"

    def _given(self, *names: str) -> tuple[str, str | None]:
        """Return the first of `names` with a value, and the value; else the first name and None."""
        self._handled.update(names)
        known = next((name for name in names if name in self._conf), names[0])
        return known, self._conf.get(known)

    def _left(self) -> Iterable[str]:
        return [name for name in self._conf if name not in self._handled]

    def _brokers(self) -> None:
        name, value = self._given("properties.bootstrap.servers")
        if value is None:
            self._missing(name)
        self._needed(name, ("kafka", "bootstrap.servers"), value or f"{_STAND_IN}:9092")

    def _format(self) -> None:
        """Import the data format, and the schema registry that it may need."""
        name, value = self._given("value.format", "format")
        if value is None:
            self._missing(name)
        elif value not in DATA_FORMATS:
            self.imported.leave(f"{self._argument(name)}={value}", "is not known", essential=True)
        data_format = value if value in DATA_FORMATS else DEFAULT_FORMAT
        self._needed(name, ("format",), data_format)
        key, url = self._given("schema.registry.url")
        is_required = describe_format(data_format).registry == "required"
        if url is None and is_required:
            self._missing(key)
            url = f"http://{_STAND_IN}:8081"
        if url is not None and is_required:
            self._needed(key, ("schema-registry", "url"), url)
        elif url is not None:
            path = (*self._source, "schema-registry", "url")
            self.imported.take(self._argument(key), path, url)

    def _topics(self) -> None:
        name, pattern = self._given("topic-pattern")
        _, topics = self._given("topic")
        if topics:
            names = [topic.strip() for topic in topics.split(";") if topic.strip()]
            self._needed("topic", ("topics",), names)
            if pattern:
                self.imported.leave(
                    self._argument(name), "cannot be combined with topic", essential=True
                )
        elif pattern and _is_pattern(pattern):
            self._needed(name, ("topic-pattern",), pattern)
        else:
            if pattern:
                text = "is not a valid regular expression here"
                self.imported.leave(f"{self._argument(name)}={pattern}", text, essential=True)
            else:
                self._missing("topic")
            self._needed("topic", ("topics",), [_STAND_IN])

    def _missing(self, name: str) -> None:
        text = f"is missing; {_STAND_IN} is its placeholder"
        self.imported.leave(self._argument(name), text, essential=True)

    def _needed(self, name: str, key: tuple[str, ...], value: object) -> None:
        piece = Piece(self._argument(name), {(*self._source, *key): value}, needed=True)
        self.imported.pieces.append(piece)

    def _start(self) -> None:
        """Import the startup and bounded modes with their timestamps and offsets."""
        for which, default in (("startup", _DEFAULT_MODE), ("bounded", None)):
            base = f"scan.{which}"
            name, mode = self._given(f"{base}.mode")
            mode = mode or default
            entries: dict[Path, object] = {}
            if mode is not None:
                entries[*self._source, f"{which}-mode"] = mode
            for ending in ("timestamp-millis", "specific-offsets"):
                _, value = self._given(f"{base}.{ending}")
                if value is not None:
                    entries[*self._source, f"{which}-{ending}"] = value
            if which == "startup" and name not in self._conf:
                text = f"was not given; Flink then starts from the offsets of the group ({mode})"
                self.imported.leave(self._argument(name), text)
            if entries:
                self.imported.pieces.append(Piece(self._argument(f"{name}={mode}"), entries))

    def _secrets(self) -> None:
        """Import user and password from a JAAS configuration."""
        name, jaas = self._given("properties.sasl.jaas.config")
        if jaas is None:
            return
        pairs = {match[1]: match[2] or match[3] or match[4] for match in _JAAS.finditer(jaas)}
        path = (*self._source, "kafka")
        if "username" not in pairs or "password" not in pairs:
            self.imported.leave(
                self._argument(name), "has no username and password", essential=True
            )
            return
        self.imported.take(self._argument(name), (*path, "sasl.username"), pairs["username"])
        password = pairs["password"]
        if not self._keep_secrets and not password.startswith("${"):
            password = _PASSWORD
            text = f"the password is not repeated here; put it into {_PASSWORD[6:-1]}"
            self.imported.leave(self._argument(name), text)
        self.imported.take(self._argument(name), (*path, "sasl.password"), password)

    def _client(self, name: str) -> None:
        bare = name.removeprefix(_CLIENT)
        argument, path = self._argument(name), (*self._source, "kafka")
        security = bare.startswith(("ssl.", "sasl."))
        if bare in _SAME or bare in _RENAMED:
            self.imported.take(
                argument, (*path, _RENAMED.get(bare, bare)), self._conf[name], essential=security
            )
        elif bare == "ssl.endpoint.identification.algorithm":
            self.imported.take(argument, (*path, bare), self._conf[name] or "none")
        elif bare == "ssl.truststore.location" and self._is_pem("truststore"):
            self.imported.take(argument, (*path, "ssl.ca.location"), self._conf[name])
        elif bare == "ssl.truststore.type" and self._is_pem("truststore"):
            return
        elif bare in _OURS:
            self.imported.leave(argument, _OURS[bare])
        elif security:
            text = "belongs to the Java client; librdkafka takes PEM files: ssl.ca.location, "
            text += "ssl.certificate.location, ssl.key.location"
            self.imported.leave(argument, text, essential=True)
        else:
            self.imported.leave(argument, "belongs to the Java client")

    def _is_pem(self, store: str) -> bool:
        return self._conf.get(f"{_CLIENT}ssl.{store}.type", "").upper() == "PEM"

    def _other(self, name: str) -> None:
        self.imported.leave(
            self._argument(name), _READING.get(name, "belongs to Flink's connector")
        )


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
