"""A soak reads what it wrote, and tells growth by comparing the last tenth with an early one."""

from pathlib import Path

import pytest

from bench.soak import JUDGED, Soak, Tenth, grown, ratios
from ingestd.paimon.table.read.table_read import read_table


def _tenth(files: float) -> Tenth:
    return Tenth(batch_cpu_ms=[5.0, 7.0, 90.0], live_files=[files, files + 2])


def test_the_last_tenth_is_compared_with_the_second() -> None:
    tenths = [_tenth(100), *(_tenth(4) for _ in range(8)), _tenth(9)]
    found = ratios(tenths)
    assert (found["batch_cpu_ms"], found["live_files"], found["read_ms"]) == (1.0, 2.0, 1.0)
    assert grown(found, 1.3) == {"live_files": 2.0}
    assert grown(found, 2.0) == {}


def test_each_tenth_has_samples_of_everything_that_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tenths = Soak(tmp_path, events=5, keys=20, options={"bucket": "1"}).run(70)
    assert [len(tenth.batch_ms) for tenth in tenths] == [7] * 10
    for tenth in tenths:
        assert all(tenth.figures()[name] > 0 for name in JUDGED)
    assert capsys.readouterr().out.count("tenth") == 10


def test_a_table_that_loses_rows_ends_the_soak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.soak.read_table", lambda table: read_table(table).slice(1))
    with pytest.raises(SystemExit, match="does not hold what was written"):
        Soak(tmp_path, events=5, keys=20, options={}).run(50)
