"""Choice of the file format."""

import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.format.base import FORMATS, format_of, load_format


@pytest.mark.parametrize("name", FORMATS)
def test_every_registered_format_has_the_functions_of_one(name: str) -> None:
    module = load_format(name)
    assert all(callable(getattr(module, f)) for f in ("write_file", "encoded_size", "read_file"))


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"'csv'.*file\.format.*parquet"):
        load_format("csv")


def test_the_format_stands_behind_the_last_dot() -> None:
    assert format_of("data-1.2-0.zstd.parquet") == "parquet"
