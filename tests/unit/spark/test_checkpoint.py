"""The folder of Spark's checkpoint, and the offsets of a batch in it."""

import json
import tempfile
from pathlib import Path

import pytest

from ingestd.errors import FormatError, RetryableError
from ingestd.kafka.offset_ranges import BatchOffsets, encode
from ingestd.spark.checkpoint import checkpoint_folder, read_batch_offsets


def test_each_query_has_an_empty_folder_of_its_own_that_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with checkpoint_folder() as one, checkpoint_folder() as other:
        assert one != other
        assert list(Path(one).iterdir()) == []
        Path(one, "offsets").mkdir()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(RetryableError, match=r"file .*set TMPDIR"), checkpoint_folder():
        pass


def test_the_offsets_of_a_batch_are_those_that_spark_planned(tmp_path: Path) -> None:
    planned = BatchOffsets({"s": {"t": {0: 1}}}, {"s": {"t": {0: 9}}})
    (tmp_path / "offsets").mkdir()
    file = tmp_path / "offsets" / "3"
    file.write_text(f"v1\n{{}}\n{json.dumps(encode(planned))}")
    assert read_batch_offsets(str(tmp_path), 3) == planned
    with pytest.raises(FormatError, match="offsets/4: the checkpoint has no offsets of batch 4"):
        read_batch_offsets(str(tmp_path), 4)
    file.write_text("v1\n{}")
    with pytest.raises(FormatError, match="offsets/3: not an offset log of Spark"):
        read_batch_offsets(str(tmp_path), 3)
