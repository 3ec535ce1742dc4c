"""Spark's checkpoint as ingestd uses it: generations of a directory, and the offsets of a batch.

A generation is one Spark checkpoint, `<root>/gen-<k>`. The tables are the truth: when the newest
generation is ahead of them, or cannot be read, a new generation starts from the tables' offsets
and the old one stays for a person to look at.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from ingestd.errors import FormatError, IngestdError
from ingestd.kafka.ranges import BatchOffsets, Offsets, parse_offset_log
from ingestd.paimon.io.file_io import FileIO

_PREFIX = "gen-"


@dataclass(frozen=True, slots=True)
class Generation:
    """The checkpoint directory to run on; `seed` are the offsets a new one starts from."""

    path: str
    seed: Offsets
    reason: str


def choose_generation(io: FileIO, root: str, from_tables: Offsets) -> Generation:
    """The newest generation if it is not ahead of the tables, else a new one seeded from them.

    `from_tables` holds the next offset of every topic partition that the tables know.
    """
    newest = max(_generations(io, root), default=None)
    if newest is None:
        return Generation(f"{root}/{_PREFIX}0", from_tables, "new")
    path = f"{root}/{_PREFIX}{newest}"
    successor = f"{root}/{_PREFIX}{newest + 1}"
    try:
        reached = _reached(io, path)
    except IngestdError as error:
        return Generation(successor, from_tables, f"{path} is not readable: {error}")
    if reached is not None and _ahead(reached, from_tables):
        return Generation(successor, from_tables, f"{path} is ahead of the tables")
    return Generation(path, from_tables, "continued")


def read_batch_offsets(io: FileIO, path: str, batch_id: int) -> BatchOffsets:
    """Offsets that Spark planned for a micro-batch, from the checkpoint's write-ahead log.

    Raises `FormatError` naming the file when it is absent or damaged.
    """
    file = f"{path}/offsets/{batch_id}"
    try:
        text = io.read_bytes(file).decode()
        return parse_offset_log(text)
    except FileNotFoundError as error:
        raise FormatError(f"{file}: the checkpoint has no offsets of batch {batch_id}") from error
    except ValueError as error:
        raise FormatError(f"{file}: not an offset log of Spark: {error}") from error


def _generations(io: FileIO, root: str) -> list[int]:
    names = (name.removeprefix(_PREFIX) for name in io.list_names(root) if name.startswith(_PREFIX))
    return [int(name) for name in names if name.isdigit()]


def _reached(io: FileIO, path: str) -> Offsets | None:
    """Offsets up to which the generation believes that everything is committed.

    FormatError for whatever would keep Spark from going on: it reads the query's id, the newest
    batch and the one before, and the newest commit, and counts all batches up to there; its first
    batch it writes into an empty directory only.
    """
    _check_document(io, f"{path}/metadata", "id")
    names = io.list_names(f"{path}/offsets")
    planned, committed = _batch_ids(names), _batch_ids(io.list_names(f"{path}/commits"))
    last = max(planned, default=-1)
    if max(committed, default=-1) > last:
        raise FormatError(f"{path}/commits: has batch {max(committed)}, offsets end at {last}")
    if committed:
        _check_document(io, f"{path}/commits/{max(committed)}", "nextBatchWatermarkMs")
    if last < 0:
        if names:  # a process died while it wrote the first batch
            raise FormatError(f"{path}/offsets: has no batch, but the unfinished file {min(names)}")
        return None
    for batch_id in range(max(last - 1, 0), last):
        read_batch_offsets(io, path, batch_id)
    offsets = read_batch_offsets(io, path, last)
    return offsets.until if last in committed else offsets.start


def _check_document(io: FileIO, path: str, key: str) -> None:
    """FormatError unless the last line of a file of Spark is a JSON object that has a key."""
    try:
        lines = io.read_bytes(path).decode().splitlines()
        document = json.loads(lines[-1])
    except FileNotFoundError:
        return
    except (ValueError, IndexError) as error:
        raise FormatError(f"{path}: not a file of Spark: {error!r}") from error
    if not isinstance(document, dict) or key not in document:
        raise FormatError(f"{path}: not a file of Spark: it has no {key}")


def _batch_ids(names: Iterable[str]) -> list[int]:
    return [int(name) for name in names if name.isdigit()]


def _ahead(reached: Offsets, tables: Offsets) -> bool:
    return any(
        reached.get(source, {}).get(topic, {}).get(partition, 0) > offset
        for source, topics in tables.items()
        for topic, partitions in topics.items()
        for partition, offset in partitions.items()
    )
