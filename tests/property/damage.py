"""Tables whose files are damaged one at a time: a changed byte, a shorter file, no file.

for damage in damages(files, Random(7), share=0.02):
    judge = verdict(damaged_table(files, damage), ...)
"""

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.casts.rows_json import json_lines, sorted_json_lines
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.incremental_read import change_fields, iter_changelog
from ingestd.paimon.table.read.table_read import read_table

Files = Mapping[str, bytes]
RIGHT, REFUSED, WRONG = "right", "refused", "wrong rows"


@dataclass(frozen=True)
class Damage:
    """One file as it is after the damage, None if it is gone."""

    path: str
    what: str
    data: bytes | None


def files_below(folder: Path) -> dict[str, bytes]:
    """The files of a warehouse by their paths in a memory of the same shape."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"/w/{path.relative_to(folder)}": path.read_bytes() for path in found}


def damages(files: Files, random: Random, share: float) -> Iterator[Damage]:
    """Each file gone, and a share (1.0: all) of its bytes changed and of its ends cut off."""
    for path, data in sorted(files.items()):
        yield Damage(path, "missing", None)
        places = range(len(data))
        for at in places if share >= 1 else random.sample(places, _some(len(data), share)):
            flipped = data[at] ^ random.choice([0xFF, *(1 << bit for bit in range(8))])
            yield Damage(path, f"byte {at}", data[:at] + bytes([flipped]) + data[at + 1 :])
        for at in places if share >= 1 else random.sample(places, _some(len(data), share / 2)):
            yield Damage(path, f"cut at {at}", data[:at])


def _some(count: int, share: float) -> int:
    return min(count, max(1, int(count * share)))


def _open(files: Files) -> FileStoreTable:
    catalog = FilesystemCatalog("/w", MemoryFileIO(dict(files)))
    return catalog.get_table(Identifier("db", "t"))


def all_rows(files: Files, condition: str) -> list[str]:
    """The newest rows."""
    table = _open(files)
    return sorted_json_lines(read_table(table), table.schema.fields)


def found_rows(files: Files, condition: str) -> list[str]:
    """The rows with a condition, which asks statistics and indexes."""
    table = _open(files)
    wanted = parse_predicate(condition, table.schema.fields)
    return sorted_json_lines(read_table(table, predicate=wanted), table.schema.fields)


def all_changes(files: Files, condition: str) -> list[str]:
    """The changes of all snapshots."""
    table = _open(files)
    parts = iter_changelog(table, 1)
    return [line for part in parts for line in json_lines(part, change_fields(table))]


READS: tuple[Callable[[Files, str], list[str]], ...] = (all_rows, found_rows, all_changes)


def verdict(
    read: Callable[[Files, str], list[str]],
    files: Files,
    condition: str,
    damage: Damage,
    wanted: list[str],
) -> str:
    """`RIGHT`, `REFUSED`, or what should not be: `WRONG` or the traceback of another error.

    A table whose first snapshot is lost looks like one whose first snapshot has expired, so that
    reading from the first one raises ConfigError.
    """
    damaged = {path: data for path, data in files.items() if path != damage.path}
    if damage.data is not None:
        damaged[damage.path] = damage.data
    try:
        return RIGHT if read(damaged, condition) == wanted else WRONG
    except (FormatError, ConfigError) as error:
        return REFUSED if _names_a_file(error.message, damaged) else f"no file: {error.message}"
    except BaseException as error:
        # Whatever else the reader raises is what is looked for; what stops a test is not.
        if not isinstance(error, Exception):
            raise
        return traceback.format_exc()


def _names_a_file(message: str, files: Files) -> bool:
    return "/w/" in message or any(path.rpartition("/")[2] in message for path in files)
