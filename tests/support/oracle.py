"""Java Paimon as a judge: one JVM for a whole test run, asked through a pipe.

    with Oracle() as oracle:
        rows = oracle.read(warehouse, "shop", "orders")
        assert oracle.fsck(warehouse, "shop", "orders") == []

The sources in ``oracle_java/`` are compiled on first use, with the Eclipse compiler so that a
Java runtime is enough, into the user's cache; the jars come from there as well.
"""

import hashlib
import json
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.closing import Closing
from tests.support.java import PAIMON, compiled_classes, judge_command

SOURCES = Path(__file__).resolve().parent / "oracle_java"


def with_rowkind(change: Mapping[str, Any]) -> dict[str, Any]:
    """A change as the oracle prints it, with our name for the column of its kind."""
    return {"rowkind" if name == "_kind" else name: value for name, value in change.items()}


def agreed_lines(oracle: "Oracle", table: FileStoreTable) -> list[str]:
    """Java reads what ingestd reads, byte for byte, and neither finds anything wrong."""
    warehouse = table.path.removesuffix("/db.db/t")
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert lines == oracle.read_lines(warehouse, "db", "t")
    assert oracle.fsck(warehouse, "db", "t", "--all", "--orphans") == []
    assert verify(table) == []
    return lines


class OracleError(Exception):
    """The oracle refused a command; the message holds the Java exception and its causes."""


class _Reply(msgspec.Struct):
    rc: int
    lines: list[msgspec.Raw] = []
    error: str = ""
    causes: list[str] = []


class Oracle(Closing):
    """One running oracle; safe to share between tests, one request at a time.

    An `exclusive` one never replaces a snapshot that another process has just put on the local
    disk: Java's own rename there looks first and moves then. What a command answers is in the
    `heap` as a whole. `zone` is the time zone of the JVM; `more` are archives beside Paimon, which
    is the archive `paimon`.
    """

    def __init__(
        self,
        *,
        exclusive: bool = False,
        heap: str = "768m",
        zone: str = "UTC",
        more: Sequence[Path] = (),
        paimon: str = PAIMON,
    ) -> None:
        self._lock = threading.Lock()
        flags = ["serve", "--exclusive"] if exclusive else ["serve"]
        classes = compiled_classes(SOURCES, paimon=paimon)
        self._process = subprocess.Popen(
            judge_command(
                "Oracle", classes, *flags, more=more, heap=heap, zone=zone, paimon=paimon
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._exchange(None)

    def close(self) -> None:
        """End the JVM."""
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        if self._process.stdout:
            self._process.stdout.close()
        self._process.wait(timeout=120)

    def call(self, *arguments: object) -> tuple[int, list[str]]:
        """Exit status and the lines of one command, the JSON text as Java prints it."""
        request = json.dumps([str(a) for a in arguments]).encode() + b"\n"
        with self._lock:
            line = self._exchange(request)
        reply = msgspec.json.decode(line, type=_Reply)
        if reply.error:
            raise OracleError("; ".join([reply.error, *reply.causes]))
        return reply.rc, [bytes(line).decode() for line in reply.lines]

    def __call__(self, *arguments: object) -> list[Any]:
        """The parsed values of one command."""
        return [json.loads(line) for line in self.call(*arguments)[1]]

    def read_lines(
        self, warehouse: Path | str, database: str, table: str, *flags: object
    ) -> list[str]:
        """Merged rows as canonical JSON lines, sorted: what ``ingestd read`` must print too."""
        return self.call("read", warehouse, database, table, *flags)[1]

    def read(
        self, warehouse: Path | str, database: str, table: str, *flags: object
    ) -> list[dict[str, Any]]:
        """Merged rows; flags as ``--snapshot N``, ``--filter column>=value``, ``--rowkind``."""
        return self("read", warehouse, database, table, *flags)

    def get(
        self,
        warehouse: Path | str,
        database: str,
        table: str,
        keys: Iterable[Mapping[str, Any]],
        scratch: Path,
        *flags: object,
    ) -> list[dict[str, Any]]:
        """What Java's local lookup finds; with ``--figures``, what it costs as the last value."""
        file = scratch / "keys.jsonl"
        file.write_text("".join(json.dumps(key) + "\n" for key in keys), encoding="utf-8")
        return self("get", warehouse, database, table, file, *flags)

    def changelog(
        self, warehouse: Path | str, database: str, table: str, *flags: object
    ) -> list[dict[str, Any]]:
        """What a streaming reader is given: rows with ``_snapshot`` and ``rowkind``."""
        changes = self("changelog", warehouse, database, table, *flags)
        return [with_rowkind(change) for change in changes]

    def inspect(self, warehouse: Path | str, database: str, table: str) -> dict[str, Any]:
        """Snapshots, schemas, manifests, live files and index entries as one object."""
        answer: dict[str, Any] = self("inspect", warehouse, database, table)[0]
        return answer

    def fsck(
        self, warehouse: Path | str, database: str, table: str, *flags: str
    ) -> list[dict[str, Any]]:
        """Problems, warnings included; flags: ``--all``, ``--orphans``, ``--shallow``."""
        return self("fsck", warehouse, database, table, *flags)

    def append(
        self,
        warehouse: Path | str,
        database: str,
        table: str,
        rows: Iterable[Mapping[str, Any]],
        scratch: Path,
        *flags: object,
    ) -> list[Any]:
        """Write rows with Java (``_kind`` optional); ``scratch`` is a folder for the rows' file."""
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        file = scratch / f"rows-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
        file.write_text(text, encoding="utf-8")
        return self("append", warehouse, database, table, file, *flags)

    def compact(self, warehouse: Path | str, database: str, table: str) -> list[Any]:
        """Full compaction of every bucket, by Java."""
        return self("compact", warehouse, database, table)

    def picks(self, cases: Iterable[Mapping[str, Any]], scratch: Path) -> list[str]:
        """What Java's strategies of compaction pick: ``COUNT:LEVEL`` or ``-``, one a case."""
        file = scratch / "cases.jsonl"
        file.write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
        answer: str = self("picks", file)[0]
        return answer.split()

    def write_spec(
        self, spec: Mapping[str, Any], warehouse: Path | str, scratch: Path
    ) -> Sequence[Any]:
        """Create the table of a specification document and run its steps; one line a snapshot."""
        text = json.dumps(spec, ensure_ascii=False)
        file = scratch / f"spec-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
        file.write_text(text, encoding="utf-8")
        return self("write", file, "--warehouse", warehouse)

    def _exchange(self, request: bytes | None) -> bytes:
        if not self._process.stdin or not self._process.stdout:
            raise OracleError("the oracle has no pipes")
        try:
            if request is not None:
                self._process.stdin.write(request)
                self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError as error:
            raise OracleError("the oracle has ended") from error
        if not line:
            raise OracleError("the oracle has ended; run its command by hand to see why")
        return line
