"""Change batches of a captured MariaDB stream, folded by key, are the rows it ended with."""

import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import ChangeBatch, Truncate, load_data_format
from tests.support.captured_chunks import mariadb
from tests.support.change_fold import Fold
from tests.support.corpus import MART
from tests.support.state import checkpoints

UNSIGNED_MAX = 2**64 - 1


@pytest.fixture(scope="module")
def decoded() -> tuple[dict[str, Fold], list[Truncate]]:
    data_format = load_data_format("debezium-json")
    folds: dict[str, Fold] = defaultdict(Fold)
    truncates: list[Truncate] = []
    for chunk in mariadb():
        found = data_format.decode(chunk, {}, {})
        assert found.rejected == []
        by_table: dict[str, list[ChangeBatch]] = defaultdict(list)
        for batch in found.batches:
            by_table[f"{batch.source.database}.{batch.source.table}"].append(batch)
        for table, batches in by_table.items():
            folds[table].add(batches)
        for truncate in found.truncates:
            table = f"{truncate.source.database}.{truncate.source.table}"
            folds[table].emptied_at = truncate.position or -1
            truncates.append(truncate)
    return folds, truncates


def on_the_wire(name: str, value: Any) -> Any:
    """What the connector can say of a value of the database."""
    if name == "b9":
        return f"{value:04x}"
    if name == "tm" and value is not None:
        sign, hours, minutes, seconds = re.fullmatch(r"(-?)(\d+):(\d\d):([\d.]+)", value).groups()
        micros = (int(hours) * 60 + int(minutes)) * 60_000_000 + round(float(seconds) * 1e6)
        return -micros if sign else micros
    if name == "e" and value is not None:
        return value.replace(",", "\\,")
    if name == "f" and value is not None:
        return float(np.float32(value))
    return -1 if value == UNSIGNED_MAX else value


def test_rows_are_those_of_the_database(
    decoded: tuple[dict[str, Fold], list[Truncate]],
) -> None:
    for name, table in checkpoints(MART)[-1].tables.items():
        if not table.key:
            continue
        found = {tuple(row[k] for k in table.key): row for row in decoded[0][name].lines()}
        wanted = {tuple(row[k] for k in table.key): row for row in table.rows}
        assert found.keys() == wanted.keys()
        for one, row in wanted.items():
            cells = {column: on_the_wire(column, value) for column, value in row.items()}
            # DDL filled these in old rows, of which the stream says nothing.
            late = {c for c in ("extra", "c_renamed") if found[one].get(c) is None}
            assert {c: found[one].get(c) for c in cells.keys() - late} == {
                c: cells[c] for c in cells.keys() - late
            }


def test_positions_follow_the_binary_log(
    decoded: tuple[dict[str, Fold], list[Truncate]],
) -> None:
    folds, [truncate] = decoded
    assert truncate.position is not None
    for fold in folds.values():
        for batches in fold.chunks:
            rows = sorted(
                (offset, position, snapshot)
                for batch in batches
                for offset, position, snapshot in zip(
                    batch.offset.tolist(),
                    batch.position.tolist(),
                    batch.snapshot_row.tolist(),
                    strict=True,
                )
            )
            streamed = [position for _, position, snapshot in rows if not snapshot]
            assert streamed == sorted(streamed)
            taken = {position for _, position, snapshot in rows if snapshot}
            assert len(taken) <= 1, "a snapshot is of one position"
            assert all(one <= streamed[0] for one in taken if streamed)
