"""How far a reader has to walk: the modules that one run of a journey passes through.

    python -m bench.journeys [--names]

Each journey is run once under `sys.setprofile`. Counted are calls of functions of the package
`ingestd`; what is generated for dataclasses, bodies of modules and classes, and comprehensions and
lambdas, which are part of their function, are not.

modules   modules of which a function is called, without the packages of `VOCABULARY`: those hold
          values and byte layouts, which a reader looks up and does not read through.
all       the same with these packages.
stack     the largest number of the package's frames on one stack until the first call of
          `_DecodeTask.shape`, which routes a change batch; to the end where nothing is routed.
returns   a reader reads each function once, in the order in which the run first calls them. A
          return is a change to a module that the reader had begun and left. Without `VOCABULARY`.
back up   pairs of caller and callee where the callee's module is on the stack below the caller's;
          generators, which are resumed by the consumer of their values, are not counted.

A parameter is followed by running the function that is passed it, and nothing else.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import ingestd
from bench.one_process import DATABASE, SOURCE, OneProcess
from ingestd.cdc.base import RecordChunk, load_data_format
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.rows.blobs import Blob
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.stages.batch_result import WriteOutcome
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.io.local import LocalFileIO
from ingestd.paimon.table.compact import table_compact
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table

PACKAGE = str(Path(next(iter(ingestd.__path__))))
ROUTING = "_DecodeTask.shape"
VOCABULARY = (
    "crash_points",
    "errors",
    "ingest.settings.",
    "ingest.values.",
    "kafka.offset_ranges",
    "log",
    "paimon.io.",
    "paimon.spec.",
)
TOPIC = "orders"
KEYS = ("id",)
ROWS = 50


@dataclass(frozen=True, slots=True)
class Journey:
    """What a journey is called, and its figures."""

    name: str
    modules: tuple[str, ...]
    all_modules: tuple[str, ...]
    stack: int
    returns: int
    back_up: int


@dataclass(slots=True)
class Walk:
    """Calls of functions of the package while it is watched, in the order of the first call."""

    calls: dict[CodeType, str] = field(default_factory=dict)
    callbacks: set[tuple[CodeType, CodeType]] = field(default_factory=set)
    stack: int = 0
    _routed: bool = False
    _paused: bool = False

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch the block, in this thread and in those that it starts."""
        threading.setprofile(self._event)
        sys.setprofile(self._event)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # the stub lacks None

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Leave out what the block calls."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def journey(self, name: str) -> Journey:
        """The figures of what was watched."""
        order = [module for module in self.calls.values() if not _is_vocabulary(module)]
        stops = [module for at, module in enumerate(order) if at == 0 or module != order[at - 1]]
        modules = tuple(dict.fromkeys(order))
        returns, every = len(stops) - len(modules), tuple(dict.fromkeys(self.calls.values()))
        return Journey(name, modules, every, self.stack, returns, len(self.callbacks))

    def _event(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or self._paused or not _is_counted(code):
            return
        stack = list(_stack(frame))
        self._routed |= code.co_qualname == ROUTING
        if not self._routed:
            self.stack = max(self.stack, len(stack))
        module = self.calls.setdefault(code, module_of(code))
        caller, below = stack[1:2], stack[2:]
        if code.co_flags & _GENERATOR:
            return  # resumed by who takes its values
        if caller and module != module_of(caller[0]) and module in map(module_of, below):
            self.callbacks.add((caller[0], code))


def _is_counted(code: CodeType) -> bool:
    named = not code.co_name.startswith("<")  # those of comprehensions and lambdas are not
    return named and code.co_filename.startswith(PACKAGE) and bool(code.co_flags & _OPTIMIZED)


_OPTIMIZED = 1
"""The flag of functions; bodies of modules and classes are without it."""
_GENERATOR = 0x20


def _is_vocabulary(module: str) -> bool:
    return module.startswith(VOCABULARY)


def _stack(frame: FrameType | None) -> Iterator[CodeType]:
    """The package's functions on the stack, the innermost first."""
    while frame is not None:
        if _is_counted(frame.f_code):
            yield frame.f_code
        frame = frame.f_back


def module_of(code: CodeType) -> str:
    """The name of the module of a function, `paimon.io.local`."""
    path = code.co_filename[len(PACKAGE) + 1 :].removesuffix(".py")
    return path.removesuffix("/__init__").replace("/", ".")


def orders(start: int, count: int = ROWS) -> list[Mapping[str, Any]]:
    """Rows of the topic of all journeys."""
    return [{"id": n, "note": f"note {n}", "price": n / 4} for n in range(start, start + count)]


class Ground:
    """A pipeline with one table of two batches, whose rows share keys."""

    def __init__(self, folder: Path) -> None:
        self._pipeline = OneProcess(folder, {"bucket": "1"}, ())
        self._pipeline.open()
        self._read = 0
        for start in (0, ROWS // 2):
            self._pipeline.batch({TOPIC: orders(start)}, KEYS)
            self._read += ROWS

    def table(self) -> FileStoreTable:
        """The table."""
        return self._pipeline.catalog.get_table(Identifier(DATABASE, TOPIC))

    def context(self) -> BatchContext:
        """What tasks of the next batch work with."""
        return self._pipeline.context()

    def next_range(self) -> list[OffsetRange]:
        """New records, not in the table yet."""
        self._pipeline.produce(TOPIC, orders(self._read), KEYS)
        start, self._read = self._read, self._read + ROWS
        return [OffsetRange(SOURCE, TOPIC, 0, start, self._read)]

    def decode(self, context: BatchContext, ranges: Sequence[OffsetRange]) -> list[Blob]:
        """Stage 1."""
        pairs = decode_ranges(context, ranges, fetch=self._pipeline.fetch)
        return [blob for _, blob in pairs]

    def chunks(self) -> list[RecordChunk]:
        """New records, as one chunk."""
        return [
            chunk
            for wanted in self.next_range()
            for chunk in self._pipeline.fetch(self.context().sources[SOURCE].kafka, wanted)
        ]

    def batch(self) -> None:
        """A whole batch, committed."""
        self._pipeline.batch({TOPIC: orders(self._read)}, KEYS)
        self._read += ROWS

    def write(self, context: BatchContext, ranges: Sequence[OffsetRange]) -> WriteOutcome:
        """Both stages."""
        return write_slot(context, self.decode(context, ranges), complete_rows)


def debezium_to_parquet(ground: Ground) -> Journey:
    """Both stages over one chunk of Debezium JSON that is like the one before."""
    ground.write(ground.context(), ground.next_range())
    context, ranges, walk = ground.context(), ground.next_range(), Walk()
    with walk.watch():
        outcome = ground.write(context, ranges)
    assert sum(outcome.counts.rows.values()) == ROWS
    return walk.journey("Debezium JSON record to Parquet row")


def contended_commit(ground: Ground) -> Journey:
    """A compaction whose snapshot's number another writer takes first."""
    table, walk, rival = ground.table(), Walk(), [ground]
    commit, publish = table_compact.commit, LocalFileIO.try_write_atomic

    def watched(*arguments: object, **named: object) -> object:
        with walk.watch():
            return commit(*arguments, **named)

    def racing(io: LocalFileIO, path: str, data: bytes) -> bool:
        if rival and "/snapshot/snapshot-" in path:
            with walk.pause():
                rival.pop().batch()
        return publish(io, path, data)

    with (
        mock.patch.object(table_compact, "commit", watched),
        mock.patch.object(LocalFileIO, "try_write_atomic", racing),
    ):
        result = table_compact.compact_table(table, now_ms=int(time.time() * 1000), full=True)
    assert result.status == "compacted"
    assert not rival
    return walk.journey("commit with conflict and retry")


def merged_read(ground: Ground) -> Journey:
    """All rows of the table, with files whose keys overlap."""
    table, walk = ground.table(), Walk()
    with walk.watch():
        rows = read_table(table)
    assert rows.num_rows >= ROWS
    return walk.journey("merged read")


def parameter_chunk(ground: Ground) -> Journey:
    """The chunk that `JsonChanges.decode` is passed for Debezium JSON."""
    source = load_data_format("debezium-json")
    [chunk] = ground.chunks()
    walk = Walk()
    with walk.watch():
        decoded = source.decode(chunk, {}, {})
    assert not decoded.rejected
    return walk.journey("parameter chunk from JsonChanges.decode")


def parameter_ranges(ground: Ground) -> Journey:
    """The ranges that `decode_ranges` is passed."""
    ground.decode(ground.context(), ground.next_range())
    context, ranges = ground.context(), ground.next_range()
    walk = Walk()
    with walk.watch():
        ground.decode(context, ranges)
    return walk.journey("parameter ranges from decode_ranges")


JOURNEYS: tuple[Callable[[Ground], Journey], ...] = (
    debezium_to_parquet,
    contended_commit,
    merged_read,
    parameter_chunk,
    parameter_ranges,
)


def journeys() -> list[Journey]:
    """Run all journeys, each on a table of its own."""
    made = []
    for journey in JOURNEYS:
        with tempfile.TemporaryDirectory() as folder:
            made.append(journey(Ground(Path(folder))))
    return made


def main(arguments: Sequence[str]) -> None:
    """Print the figures, with `--names` the modules as well."""
    print("| journey | modules | all | stack | returns | back up |\n|---|---|---|---|---|---|")
    measured = journeys()
    for journey in measured:
        modules = f"{len(journey.modules)} | {len(journey.all_modules)}"
        walk = f"{journey.stack} | {journey.returns} | {journey.back_up}"
        print(f"| {journey.name} | {modules} | {walk} |")
    for journey in measured if "--names" in arguments else ():
        print(f"\n{journey.name}: {', '.join(journey.modules)}")


if __name__ == "__main__":
    main(sys.argv[1:])
