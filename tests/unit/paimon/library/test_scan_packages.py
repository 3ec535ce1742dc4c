import json

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.library import scan
from ingestd.paimon.library.scan import optional_package


def test_a_package_that_is_there_is_given() -> None:
    assert optional_package("json") is json


def test_one_that_is_not_is_named_with_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match=r"`pip install 'ingestd-paimon\[no_such_package\]'`"):
        optional_package("no_such_package")


def test_what_a_package_itself_lacks_is_reported_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> object:
        raise ModuleNotFoundError(name="something_inside")

    monkeypatch.setattr(scan, "import_module", broken)
    with pytest.raises(ModuleNotFoundError):
        optional_package("polars")
