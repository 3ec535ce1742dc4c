"""Unlinked files in Spark's local directory."""

from pathlib import Path

import pytest

from ingestd.spark.exchange.temporary_files import local_directory, mapped, temporary_file


def test_mapped_bytes_outlive_the_file_which_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/another")
    assert local_directory() == str(tmp_path)
    with temporary_file() as file:
        file.write(b"a" * 100_000)
        content = mapped(file)
    assert content.to_pybytes() == b"a" * 100_000
    assert list(tmp_path.iterdir()) == []
