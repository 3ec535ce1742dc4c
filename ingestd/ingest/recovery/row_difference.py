"""How the rows of two tables differ, by key, or by content where there is no key."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import iter_buckets

SAMPLES = 5
_DIGEST_BYTES = 12
_TEXT = 80


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Counts of rows: of both tables, and of those in which they differ.

    `missing` are in the expected table only, `extra` in the other one only, `different` have one
    key and other contents. `samples` are texts of the first keys (or rows) of each kind.
    """

    expected: int = 0
    found: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    samples: tuple[tuple[str, str], ...] = ()


def compare_rows(
    expected: FileStoreTable, found: FileStoreTable, snapshot_id: int | None
) -> RowDifference:
    """Compare the rows of two tables, the second as of a snapshot (None: it has none).

    Only the columns of the second count. Memory: some 100 bytes for each expected row.
    """
    columns = [field.name for field in found.schema.fields]
    keys = list(found.schema.primary_keys)
    wanted = Counter(_rows(expected, columns, keys, None))
    by_key = dict(list(wanted)) if keys else {}
    counts: Counter[str] = Counter(expected=wanted.total())
    samples: list[tuple[str, str]] = []

    def note(kind: str, key: str, count: int = 1) -> None:
        counts[kind] += count
        if sum(one == kind for one, _ in samples) < SAMPLES:
            samples.append((kind, key))

    for row in () if snapshot_id is None else _rows(found, columns, keys, snapshot_id):
        counts["found"] += 1
        if wanted[row] > 0:
            wanted[row] -= 1
            by_key.pop(row[0], None)
        elif row[0] in by_key:
            note("different", row[0])
            wanted[row[0], by_key.pop(row[0])] -= 1
        else:
            note("extra", row[0])
    for row, count in (+wanted).items():
        note("missing", row[0], count)
    return RowDifference(**counts, samples=tuple(samples))


def _rows(
    table: FileStoreTable, columns: list[str], keys: list[str], snapshot_id: int | None
) -> Iterator[tuple[str, bytes]]:
    """Of each row the text of its key (without one the start of its text), and its digest."""
    for part in iter_buckets(table, snapshot_id=snapshot_id, columns=columns):
        for row in part.select(columns).to_pylist():
            text = repr(row)
            key = repr({name: row[name] for name in keys}) if keys else text[:_TEXT]
            yield key, blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
