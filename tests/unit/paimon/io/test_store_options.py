import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.io.file_io import file_io_for
from ingestd.paimon.io.store_options import S3, check_storage_options, client_name, storage_options


def test_only_options_of_stores_are_taken() -> None:
    options = {"s3.endpoint": "x", "fs.s3a.access.key": "k", "case-sensitive": "true", "uri": "u"}
    assert storage_options(options) == {"s3.endpoint": "x", "fs.s3a.access.key": "k"}


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"s3\.bukket.*s3\.endpoint"):
        check_storage_options("s3", {"s3.bukket": "x"})


def test_a_local_warehouse_has_no_such_options() -> None:
    with pytest.raises(ConfigError, match=r"s3\.endpoint: only warehouses in an object store"):
        file_io_for("/lake", {"s3.endpoint": "x"})


@pytest.mark.parametrize("name", ["s3.secret-key", "s3a.secret-key", "fs.s3a.secret-key"])
def test_the_prefix_does_not_matter(name: str) -> None:
    assert client_name(S3, name) == "secret_access_key"


def test_secrets_are_not_shown() -> None:
    assert "hush" not in repr(file_io_for("s3://bucket/w", {"s3.secret-key": "hush"}))
