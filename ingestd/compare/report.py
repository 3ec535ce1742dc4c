"""The results of comparisons as documents, and hints for the repair of differences."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ingestd.compare.canonical import shown_text
from ingestd.compare.column_pairs import DatabaseTable, Key, Pairing
from ingestd.compare.dialect import SqlDialect
from ingestd.compare.newest_records import NewestRecords, RecordCoordinates
from ingestd.compare.source_table import Texts
from ingestd.compare.table_compare import ComparisonOutcome, Difference, Kind
from ingestd.wording import counted

Document = dict[str, Any]
KINDS: tuple[Kind, ...] = ("missing", "extra", "different")
_HINTED_KEYS = 100


def result_document(
    table: str,
    source: DatabaseTable,
    pairing: Pairing,
    outcome: ComparisonOutcome,
    newest: NewestRecords | None,
) -> Document:
    """Return the result of a table as the document that `--json` prints.

    `newest` are the newest records of the differing keys, None if they were not searched.
    """
    records = {} if newest is None else newest.by_key
    kinds = [difference.kind for difference in outcome.differences]
    return {
        "table": table,
        "source": str(source),
        "rows": outcome.rows,
        "compared_by": "key-ranges" if pairing.is_ordered else "key-hashes",
        "complete": outcome.is_complete,
        **{str(kind): kinds.count(kind) for kind in KINDS},
        "moving": len(outcome.moving),
        "kept": outcome.kept,
        "records_searched": None if newest is None else newest.searched,
        "differences": [
            _difference(pairing, difference, records.get(difference.key))
            for difference in outcome.differences
        ],
        "moving_keys": [_shown_key(pairing, key) for key in outcome.moving],
        "columns_not_compared": [
            {"column": other.column, "reason": other.reason} for other in pairing.others
        ],
    }


def has_differences(result: Mapping[str, Any]) -> bool:
    """Return whether the result of a table has a difference.

    Keys whose rows kept changing, so that they could not be compared, are not differences.
    """
    return bool(result["differences"])


def repair_hints(result: Mapping[str, Any], dialect: SqlDialect) -> Iterator[str]:
    """Yield hints that state how to repair the differences of a table; execute nothing.

    `result` is a document of `result_document`. Statements are in the dialect of the source.
    """
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for difference in result["differences"]:
        by_kind.setdefault(difference["kind"], []).append(difference["key"])
    name = result["table"]
    wanted = [*by_kind.get("missing", ()), *by_kind.get("different", ())]
    if wanted:
        yield f"{name}: if dead letters hold these rows (`ingestd dlq list`), `ingestd dlq replay`"
        yield (
            f"{name}: else let Debezium read the rows again, by its signalling table:\n"
            f"{_signal(str(result['source']), wanted, dialect)}"
        )
        if len(wanted) > _HINTED_KEYS:
            yield (
                f"{name}: the statement has the first {_HINTED_KEYS} of "
                f"{counted(len(wanted), 'key')}"
            )
    if "extra" in by_kind:
        yield (
            f"{name}: only in the lake: {counted(len(by_kind['extra']), 'row')}, and a "
            f"snapshot deletes "
            "nothing. If the topics still have the deletions, `ingestd begin` reads them again; "
            "else delete the keys with `ingestd.paimon`"
        )


def _signal(source: str, keys: Sequence[Mapping[str, Any]], dialect: SqlDialect) -> str:
    """Return the SQL of the signal that makes Debezium read the rows with these keys again.

    Only the first `_HINTED_KEYS` keys are included.
    """
    conditions = " OR ".join(
        " AND ".join(
            f"{dialect.identifier(column)} = {dialect.literal(value)}"
            for column, value in key.items()
        )
        for key in keys[:_HINTED_KEYS]
    )
    data = json.dumps(
        {
            "type": "incremental",
            "data-collections": [source],
            "additional-conditions": [{"data-collection": source, "filter": conditions}],
        }
    )
    return (
        f"INSERT INTO debezium_signal (id, type, data) VALUES ({dialect.RANDOM_ID}, "
        f"'execute-snapshot', {dialect.literal(data)});"
    )


def _difference(
    pairing: Pairing, difference: Difference, newest: RecordCoordinates | None
) -> Document:
    """Return a difference as a document with the columns that differ.

    A row that only one side has is shown with all compared columns. `newest` is the newest record
    of the key, if known.
    """
    return {
        "kind": difference.kind,
        "key": _shown_key(pairing, difference.key),
        "source": _shown(pairing, difference.source, difference.lake),
        "lake": _shown(pairing, difference.lake, difference.source),
        "newest_record": None
        if newest is None
        else {"topic": newest.topic, "partition": newest.partition, "offset": newest.offset},
    }


def _shown_key(pairing: Pairing, key: Key) -> dict[str, str | None]:
    pairs = zip(pairing.key, key, strict=True)
    return {column.source.name: shown_text(text, column.type) for column, text in pairs}


def _shown(pairing: Pairing, row: Texts | None, other: Texts | None) -> Document | None:
    if row is None:
        return None
    pairs = enumerate(zip(pairing.columns, row, strict=True))
    return {
        column.name: shown_text(text, column.type)
        for number, (column, text) in pairs
        if other is None or other[number] != text
    }
