"""Leadership of a pipeline: the process that has claimed the newest term is the leader.

A term is a numbered file that is created exclusively, so two processes never have the same term. A
process that claims the next term deletes the file of the previous term. No clock is used: a slow
process does not lose its term, and a process that was suspended for a day finds its file deleted.
Tables are safe without leadership, because each commit is a compare-and-swap. Leadership decides
which of two processes continues, and stops the other process with a clear error.
"""

import json
import os
import platform
import uuid
from functools import cache

from ingestd.errors import (
    CommitConflictError,
    FencedError,
    FormatError,
    IngestdError,
    StorageError,
)
from ingestd.ingest.tables.pipeline_warehouse import pipeline_folder, pipelines_folder
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.paths import file_numbers

_PREFIX = "term-"
_REMEMBERED = 50
_TRIES = 100


def this_process() -> str:
    """Return a unique and readable name of this process, `host:pid:id`, the same in every call."""
    return _process_name(os.getpid())


@cache
def _process_name(pid: int) -> str:
    return f"{platform.node()}:{pid}:{uuid.uuid4().hex[:12]}"


def pipelines(io: FileIO, warehouse: str) -> dict[str, str]:
    """Return the directories of all pipelines that have had a leader in a warehouse, by name."""
    names = io.list_names(pipelines_folder(warehouse))
    folders = {name: pipeline_folder(warehouse, name) for name in names}
    return {
        name: folder
        for name, folder in folders.items()
        if any(name.startswith(_PREFIX) for name in io.list_names(folder))
    }


class Leadership:
    """Leadership of one pipeline, claimed and checked by the process with the unique name `holder`.

    The files of the terms are in `folder`. `term` is the term that this process has claimed, 0
    before `claim`.
    """

    def __init__(self, io: FileIO, folder: str, pipeline: str, holder: str) -> None:
        self._io = io
        self._folder = folder
        self.pipeline = pipeline
        self._holder = holder
        self.term = 0

    def claim(self) -> None:
        """Claim leadership: keep the newest term if this process holds it, or create a new term.

        Raises FencedError if this process was the leader and another process has replaced it: a
        restart of its query must not take the leadership back. Raises FormatError if a term file is
        invalid, and StorageError if too many other processes claim at the same time, or if older
        term files can be neither deleted nor overwritten.
        """
        for _ in range(_TRIES):
            terms = self._terms()
            newest = max(terms, default=0)
            holders = self._holders(newest) if newest else []
            if holders is None:
                continue  # deleted just now: a newer term exists
            if holders[:1] == [self._holder]:
                self._lead(newest, terms)
                return
            if self._holder in holders:
                raise self._fenced(holders[0])
            if self._take(newest + 1, holders):
                return
        raise StorageError(
            f"{self._folder}: other processes claimed pipeline {self.pipeline} {_TRIES} times "
            "in the meantime; stop all daemons of this pipeline except one"
        )

    def check(self) -> None:
        """Raise FencedError if another process claimed a newer term, or the term file was deleted.

        Checking that the file exists would not suffice: another process that was suspended for
        several terms may have replaced it with its own. Raises FormatError if the file is invalid,
        and StorageError if it cannot be read.
        """
        holders = self._holders(self.term)
        if holders is None or holders[0] != self._holder:
            newest = max(self._terms(), default=0)
            leader = (self._holders(newest) or [""])[0]
            raise self._fenced(leader if newest > self.term else "")

    def error_to_raise(self, error: IngestdError) -> IngestdError:
        """Return the error to raise if a batch failed with `error`.

        Only a FencedError is replaced: another process may have committed although this process is
        the leader, because its predecessor made a last commit. The result is the error of `check`,
        or, if this process is still the leader, a CommitConflictError, after which the tables are
        opened again.
        """
        if not isinstance(error, FencedError):
            return error
        try:
            self.check()
        except IngestdError as answer:
            return answer
        return CommitConflictError(
            f"{error.message} (this process leads pipeline {self.pipeline}, term {self.term}, so "
            "the other one ends; the tables are opened again)"
        )

    def _take(self, term: int, holders: list[str]) -> bool:
        document = _document(self._holder, holders[:_REMEMBERED])
        if not self._io.try_write_atomic(self._path(term), document):
            return False
        terms = self._terms()
        if max(terms, default=term) > term:  # the name was free because newer terms were claimed
            self._io.delete_quietly(self._path(term))
            return False
        self._lead(term, terms)
        return True

    def _lead(self, term: int, terms: list[int]) -> None:
        self.term = term
        older = [old_term for old_term in terms if old_term < term]
        for old_term in older:
            self._io.delete_quietly(self._path(old_term))
        if not older:
            return
        for old_term in set(older).intersection(self._terms()):
            # If the file cannot be deleted, another name in it also informs its holder.
            self._io.overwrite(self._path(old_term), _document(self._holder, []))

    def _terms(self) -> list[int]:
        return file_numbers(self._io.list_names(self._folder), _PREFIX)

    def _holders(self, term: int) -> list[str] | None:
        """Return the holder of a term and earlier holders, or None if the term has no file.

        Raises FormatError if the file is invalid.
        """
        path = self._path(term)
        try:
            document = json.loads(self._io.read_bytes(path))
            return [str(document["holder"]), *map(str, document["before"])]
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{path}: not a term of a pipeline ({error!r}); delete it") from error

    def _path(self, term: int) -> str:
        return f"{self._folder}/{_PREFIX}{term}"

    def _fenced(self, leader: str) -> FencedError:
        """Return the error for a process that lost its leadership; `leader` is "" if unknown."""
        what = f"another daemon has taken over ({leader})"
        way_out = "run only one of the two; after a command, as `ingestd begin`, start it again"
        if not leader:
            what = f"{self._path(self.term)} is gone, and no daemon has claimed a newer term"
            way_out = "start it again"
        return FencedError(
            f"pipeline {self.pipeline}: {what}; this one ({self._holder}) ends, and its batch is "
            f"not committed; {way_out}"
        )


def _document(holder: str, before: list[str]) -> bytes:
    return json.dumps({"holder": holder, "before": before}).encode()
