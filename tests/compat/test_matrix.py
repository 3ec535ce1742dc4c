"""The compatibility matrix: who reads what, as found here and kept in ``docs/compatibility.json``.

``make matrix`` asks everybody again and writes the answers; otherwise they must be the ones kept.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.compat.matrix import Matrix, difference, is_yes, outcome, rows_of, stored
from tests.compat.matrix_tables import CAPABILITIES
from tests.support.java_fixtures import NAMES, unpack
from tests.support.native_tables import open_native
from tests.support.oracle import Oracle
from tests.support.pypaimon import PaimonRust, Pypaimon

pytestmark = pytest.mark.compat


@pytest.fixture(scope="module")
def matrix(request: pytest.FixtureRequest) -> Iterator[Matrix]:
    made = Matrix()
    yield made
    if request.config.getoption("--matrix"):
        made.write()


@pytest.fixture(scope="session")
def paimon_rust() -> Iterator[PaimonRust]:
    with PaimonRust() as running:
        yield running


def _lines(table: FileStoreTable) -> list[str]:
    return sorted_json_lines(read_table(table), table.schema.fields)


def _agrees(reader: Pypaimon, warehouse: Path) -> bool | str:
    table = open_native(warehouse)
    found = rows_of(reader.read(warehouse, "db", "t"), table.schema.fields, read_table(table))
    return difference(found, [json.loads(line) for line in _lines(table)])


def _sound(oracle: Oracle, warehouse: Path) -> bool:
    findings = oracle.fsck(warehouse, "db", "t", "--all")
    return [finding for finding in findings if finding["severity"] == "error"] == []


def _java_2_continues(oracle: Oracle, warehouse: Path, scratch: Path) -> bool:
    """Java 2.0 appends to and compacts a copy of the table."""
    scratch.mkdir()
    copy = shutil.copytree(warehouse, scratch / "warehouse")
    return _goes_on(oracle, copy, scratch) and _compacts(oracle, copy)


def _java_agrees(oracle: Oracle, warehouse: Path) -> bool:
    return _lines(open_native(warehouse)) == oracle.read_lines(warehouse, "db", "t")


def _goes_on(oracle: Oracle, warehouse: Path, scratch: Path) -> bool:
    """Java appends rows that are there already, and both read the same afterwards."""
    rows = [json.loads(line) for line in _lines(open_native(warehouse))[:3]]
    oracle.append(warehouse, "db", "t", rows, scratch)
    return _java_agrees(oracle, warehouse) and _sound(oracle, warehouse)


def _compacts(oracle: Oracle, warehouse: Path) -> bool:
    before = _lines(open_native(warehouse))
    oracle.compact(warehouse, "db", "t")
    table = open_native(warehouse)
    return _lines(table) == before and _java_agrees(oracle, warehouse) and verify(table) == []


def _as_kept(found: dict[str, str], part: str, capability: str, request: Any) -> None:
    if request.config.getoption("--matrix"):
        return
    known = stored()[part].get(capability, {})
    assert {judge: is_yes(text) for judge, text in found.items()} == {
        judge: is_yes(text) for judge, text in known.items()
    }, f"{found}; run `make matrix` if that is right"


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_tables_of_ingestd_with_other_readers_and_writers(
    capability: str, tmp_path: Path, request: pytest.FixtureRequest, matrix: Matrix,
    oracle: Oracle, oracle_2: Oracle, pypaimon: Pypaimon, paimon_rust: PaimonRust,
) -> None:  # fmt: skip
    warehouse = tmp_path / "warehouse"
    table = CAPABILITIES[capability](warehouse)
    assert verify(table) == []
    assert _lines(table)
    found = {
        "ingestd": outcome(lambda: len(_lines(table)) > 0),
        "Java": outcome(lambda: _java_agrees(oracle, warehouse)),
        "Java fsck": outcome(lambda: _sound(oracle, warehouse)),
        "Java 2.0": outcome(
            lambda: _java_agrees(oracle_2, warehouse) and _sound(oracle_2, warehouse)
        ),
        "Java 2.0 continues": outcome(
            lambda: _java_2_continues(oracle_2, warehouse, tmp_path / "java_2")
        ),
        "pypaimon": outcome(lambda: _agrees(pypaimon, warehouse)),
        "paimon-rust": outcome(lambda: _agrees(paimon_rust, warehouse)),
        "Java appends": outcome(lambda: _goes_on(oracle, warehouse, tmp_path)),
        "Java compacts": outcome(lambda: _compacts(oracle, warehouse)),
    }
    for judge, text in found.items():
        matrix.note("written", capability, judge, text)
    assert is_yes(found["ingestd"])
    assert is_yes(found["Java"]), found["Java"]
    assert is_yes(found["Java fsck"]), found["Java fsck"]
    _as_kept(found, "written", capability, request)


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_java_with_other_readers(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, matrix: Matrix,
    pypaimon: Pypaimon, paimon_rust: PaimonRust,
) -> None:  # fmt: skip
    fixture = unpack(name, tmp_path)

    def agrees(reader: Pypaimon) -> bool | str:
        table = fixture.table
        rows = reader.read(fixture.warehouse, "db", "t")
        found = rows_of(rows, table.schema.fields, read_table(table))
        return difference(fixture.settled(found), wanted)

    wanted = fixture.settled(fixture.rows)
    own = fixture.settled([json.loads(line) for line in _lines(fixture.table)])
    found = {
        "ingestd": outcome(lambda: own == wanted),
        "pypaimon": outcome(lambda: agrees(pypaimon)),
        "paimon-rust": outcome(lambda: agrees(paimon_rust)),
    }
    for judge, text in found.items():
        matrix.note("read", name, judge, text)
    assert is_yes(found["ingestd"])
    _as_kept(found, "read", name, request)


def test_everything_in_the_matrix_is_still_tested() -> None:
    kept = stored()
    assert set(kept["written"]) == set(CAPABILITIES)
    assert set(kept["read"]) == set(NAMES)
