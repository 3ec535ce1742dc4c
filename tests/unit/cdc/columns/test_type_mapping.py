"""Names of type mappings are those of Paimon, in either spelling, where they can be honoured."""

import pytest

from ingestd.cdc.base import DATA_FORMATS
from ingestd.cdc.columns.type_mapping import NAMES, honoured_by, read_type_mapping
from ingestd.errors import ConfigError


def test_both_spellings_are_taken() -> None:
    assert read_type_mapping(["decimal_no_change", "To-String"], "json") == {
        "decimal-no-change",
        "to-string",
    }


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no type mapping 'bool'.*tinyint1-not-bool"):
        read_type_mapping(["bool"], "canal-json")


@pytest.mark.parametrize("name", ["tinyint1-not-bool", "longtext-to-bytes"])
def test_name_that_the_messages_know_nothing_of_is_refused(name: str) -> None:
    assert read_type_mapping([name], "canal-json") == {name}
    with pytest.raises(ConfigError, match="has no effect on maxwell-json"):
        read_type_mapping([name], "maxwell-json")


def test_every_format_takes_what_happens_anyway() -> None:
    for name in DATA_FORMATS:
        assert {"to-nullable", "allow-non-string-to-string"} <= honoured_by(name) <= NAMES
