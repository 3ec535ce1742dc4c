"""The progress file, from which an interrupted comparison continues: a line per page and result.

A line is a checksum and a JSON document. The first line identifies the comparison. An incomplete
last line is ignored; any other damage is an error.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ingestd.compare.source_table import KeyRange, Page
from ingestd.errors import ConfigError

_VERSION = 4
_SUM_DIGITS = 16
Document = Mapping[str, Any]


class ProgressFile:
    """The progress of a comparison, which is kept in a file, or only in memory if `path` is None.

    The file is created if it does not exist. `identity` identifies the comparison. Raises
    ConfigError for a file that is damaged, or of another comparison.
    """

    def __init__(self, path: Path | None, identity: Mapping[str, str]) -> None:
        self._path = path
        self._pages: dict[tuple[str, str], list[Page]] = {}
        self._results: dict[str, Document] = {}
        header = {"version": _VERSION, **identity}
        if path is None:
            return
        lines = _valid_lines(path) if path.exists() else []
        if not lines:
            path.write_text(_line(header), encoding="utf-8")
            return
        if lines[0] != header:
            raise ConfigError(
                f"{path} is the progress of another comparison (other source, pipeline, options or "
                "version); name another file, or delete this one"
            )
        for document in lines[1:]:
            self._note(document)

    def result_of(self, table: str) -> Document | None:
        """Return the result of a table, or None if it has not been compared yet."""
        return self._results.get(table)

    def pages_of(self, table: str, fingerprint: str) -> list[Page]:
        """Return the hashed pages of a table, in the order of their keys.

        Pages that were hashed with another fingerprint of the columns are left out.
        """
        return list(self._pages.get((table, fingerprint), ()))

    def add_page(self, table: str, fingerprint: str, page: Page) -> None:
        """Append a hashed page of a table to the progress file.

        `fingerprint` is the checksum of the definitions of the compared columns; pages are found
        again only by the same fingerprint.
        """
        keys = page.keys
        document = {"table": table, "columns": fingerprint, "parts": page.digests}
        self._append({**document, "low": keys.low, "high": keys.high})

    def add_result(self, table: str, result: Document) -> None:
        """Append the result of a table to the file."""
        self._append({"table": table, "result": result})

    def _append(self, document: Document) -> None:
        self._note(json.loads(json.dumps(document)))
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(_line(document))

    def _note(self, document: Document) -> None:
        table = str(document["table"])
        if "result" in document:
            self._results[table] = document["result"]
            return
        low, high = (None if bound is None else tuple(bound) for bound in _bounds(document))
        digests = {
            str(part): (int(n), int(total)) for part, (n, total) in document["parts"].items()
        }
        pages_key = table, str(document["columns"])
        self._pages.setdefault(pages_key, []).append(Page(KeyRange(low, high), digests))


@dataclass(frozen=True, slots=True)
class TablePages:
    """The hashed pages of one table in a progress file, and their columns' `fingerprint`."""

    file: ProgressFile
    table: str
    fingerprint: str

    def known(self) -> list[Page]:
        """Return the pages hashed so far with the same `fingerprint`, in order of their keys."""
        return self.file.pages_of(self.table, self.fingerprint)

    def add(self, page: Page) -> None:
        """Append the next hashed page of the table to the progress file."""
        self.file.add_page(self.table, self.fingerprint, page)


def _bounds(document: Document) -> tuple[Any, Any]:
    return document["low"], document["high"]


def _line(document: Document) -> str:
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    return f"{_checksum(text)} {text}\n"


def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_SUM_DIGITS]


def _valid_lines(path: Path) -> list[Document]:
    """Return the documents of a file; remove an incomplete last line from the file.

    Raises ConfigError for a damaged line.
    """
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    documents: list[Document] = []
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        checksum, _, text = line.decode(errors="replace").partition(" ")
        if checksum != _checksum(text):
            raise ConfigError(f"{path}: line {number} is damaged; delete the file")
        documents.append(json.loads(text))
    if len(whole) < len(data):
        path.write_bytes(whole)
    return documents
