"""The progress of a connector of MySQL or MariaDB: the source positions of its newest records.

A server does not store how far a connector has read its binary log. The newest records of the
topics have the global transaction id of their change (GTID), or the file and the position. Records
without them (other formats than JSON with the envelope of Debezium) leave the progress unknown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from ingestd.cdc.source_position import file_number, is_snapshot
from ingestd.compare.catch_up import ConnectorState
from ingestd.compare.dialect import Connection
from ingestd.errors import SourceError
from ingestd.ingest.recovery.logs import LogCluster, ask_logs
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.record_log import RecordLog

_TAIL = 20
"""The number of the newest records of a topic partition that are read."""
_GTIDS = {True: "SELECT @@gtid_current_pos", False: "SELECT @@gtid_executed"}
_STATUS = ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS")
"""Statements for the end of the binary log: before MySQL 8.4, and since."""
_THREADS = "SHOW PROCESSLIST"
_SEES_ALL_THREADS = """
SELECT count(*) FROM information_schema.user_privileges WHERE privilege_type = 'PROCESS'
  AND grantee = concat('''', replace(current_user(), '@', '''@'''), '''')
"""
_COMMAND = 4


class _Source(msgspec.Struct):
    """The position of a change in the block `source` of a message."""

    snapshot: str | bool | None = None
    server_id: int | None = None
    gtid: str | None = None
    file: str | None = None
    pos: int | None = None


class _Payload(msgspec.Struct):
    source: _Source | None = None


class _Message(msgspec.Struct):
    """The fields of a message, with or without a schema envelope, that contain its position."""

    payload: _Payload | None = None
    source: _Source | None = None


_DECODER = msgspec.json.Decoder(_Message)


@dataclass(frozen=True, slots=True)
class BinlogPosition:
    """A position at the end of a binary log, to compare with the changes of a connector.

    `gtids` has the last transaction number of each origin: a domain (MariaDB), or a UUID with its
    tag (MySQL). `server_id` is the id of the server; `file` and `pos` are the number of its binary
    log file and an offset in it; `file` is -1 if the user may not read it.
    """

    gtids: Mapping[str, int]
    server_id: int
    file: int = -1
    pos: int = 0

    def is_before(self, source: _Source) -> bool:
        """Return whether this position precedes a change, given the field `source` of its message.

        Returns False for rows of a snapshot, and if the two positions cannot be compared.
        """
        if is_snapshot(source.snapshot):
            return False
        origin, number = _last_of_origin(source.gtid or "")
        if origin in self.gtids:
            return number > self.gtids[origin]
        if source.gtid or self.file < 0 or source.server_id != self.server_id:
            return False
        return (file_number(source.file), source.pos or 0) >= (self.file, self.pos)

    def __str__(self) -> str:
        gtids = ",".join(f"{origin}:{number}" for origin, number in sorted(self.gtids.items()))
        return gtids or f"{self.file}:{self.pos}"


def parse_gtids(text: str) -> dict[str, int]:
    """Return the last transaction number of each origin: a domain (MariaDB) or a UUID with its tag.

    `text` is a set of GTIDs of MySQL, such as `UUID:1-7:9,UUID:TAG:1-3`, or a GTID position of
    MariaDB, such as `DOMAIN-SERVER-NUMBER,...`.
    """
    last: dict[str, int] = {}
    for part in "".join(text.split()).split(","):
        if ":" not in part:
            origin, number = _last_of_origin(part)
            if origin:
                last[origin] = number
            continue
        uuid, *intervals = part.split(":")
        origin = uuid
        for interval in intervals:
            if interval.partition("-")[0].isdecimal():
                last[origin] = max(last.get(origin, 0), int(interval.rpartition("-")[2]))
            else:
                origin = f"{uuid}:{interval}"
    return last


def _last_of_origin(gtid: str) -> tuple[str, int]:
    """Return the origin and the number of a GTID, or ("", 0) if the text is not a GTID."""
    if ":" in gtid:
        origin, _, number = gtid.rpartition(":")
    else:
        origin, _, rest = gtid.partition("-")
        number = rest.rpartition("-")[2]
    return (origin, int(number)) if number.isdecimal() else ("", 0)


@dataclass(slots=True)
class BinlogReader:
    """The progress of a MySQL or MariaDB connector, read from the newest records of its topics.

    `connection` is a session with the database. `clusters` are the clients of brokers by source,
    and `log` reads the topics of `sources`. Methods raise SourceError if the database or the
    brokers do not respond.
    """

    connection: Connection
    sources: Mapping[str, KafkaSource]
    clusters: Mapping[str, LogCluster]
    log: RecordLog
    _newest: dict[tuple[str, int], tuple[int, list[_Source]]] = field(default_factory=dict)

    def source_position(self) -> BinlogPosition:
        """Return the current end of the server's binary log."""
        [(version, server_id)] = self.connection.query("SELECT version(), @@server_id")
        is_mariadb = "mariadb" in str(version).lower()
        [(gtids,)] = self.connection.query(_GTIDS[is_mariadb])
        file, pos = self._file_and_pos()
        return BinlogPosition(parse_gtids(str(gtids)), int(server_id), file, pos)

    def state_at(self, position: BinlogPosition) -> ConnectorState | None:
        """Return whether the connector has passed `position`, and whether it is active; never None.

        The connector has passed if one of the newest records in the topics comes from a change
        after `position`. It counts as active also if the user may not see the server's threads, by
        which an active connector is recognised. The `position` of the result is a text with the end
        offsets of the topics.
        """
        newest = list(self._newest_changes())
        passed = any(position.is_before(source) for source in newest)
        ends = {partition: offset for partition, (offset, _) in sorted(self._newest.items())}
        return ConnectorState(passed, self._is_active(), str(ends))

    def _file_and_pos(self) -> tuple[int, int]:
        for statement in _STATUS:
            try:
                rows = self.connection.query(statement)
            except SourceError:  # not permitted, or not known to this version
                continue
            if rows:
                return file_number(str(rows[0][0])), int(rows[0][1])
        return -1, 0

    def _is_active(self) -> bool:
        """Return whether a connector reads the binary log; true if the user may not see this."""
        threads = self.connection.query(_THREADS)
        if any(str(thread[_COMMAND]).startswith("Binlog Dump") for thread in threads):
            return True
        [(sees_all,)] = self.connection.query(_SEES_ALL_THREADS)
        return not sees_all

    def _newest_changes(self) -> Iterator[_Source]:
        """Yield the positions of the newest records of all topic partitions."""
        logs = ask_logs(self.clusters)
        for (key, partition), state in logs.states.items():
            known = self._newest.get((key, partition))
            if known is None or known[0] != state.end:
                name = logs.names[key]
                start = max(state.begin, state.end - _TAIL)
                tail = OffsetRange(name.source, name.topic, partition, start, state.end)
                known = state.end, list(self._read(tail))
                self._newest[key, partition] = known
            yield from known[1]

    def _read(self, tail: OffsetRange) -> Iterator[_Source]:
        if tail.rows <= 0:
            return
        for chunk in self.log.read(self.sources[tail.source], tail, headers=False):
            for value in chunk.values:
                source = None if value is None else _source_of(value)
                if source is not None:
                    yield source


def _source_of(value: bytes) -> _Source | None:
    """Return the source position in a message, or None if the message contains none."""
    try:
        message = _DECODER.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    return message.source if message.payload is None else message.payload.source
