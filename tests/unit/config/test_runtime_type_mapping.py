"""The type mapping of a source reaches its decoder, or is refused where it means nothing."""

from pathlib import Path

import pytest

from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError

FILE = """
warehouse: {path: /lake}
sources:
  shop:
    kafka: {bootstrap.servers: "localhost:9092"}
    topics: [orders]
    format: FORMAT
    type-mapping: NAMES
"""


def mapping(folder: Path, data_format: str, names: str) -> frozenset[str]:
    path = folder / "f.yaml"
    text = FILE.replace("FORMAT", data_format).replace("NAMES", names)
    path.write_text(text, encoding="utf-8")
    settings = pipeline_settings(load_config(path, {}))
    return settings.sources["shop"].format_settings.type_mapping


def test_names_reach_the_decoder_in_their_usual_spelling(tmp_path: Path) -> None:
    found = mapping(tmp_path, "canal-json", "[tinyint1_not_bool, to-nullable]")
    assert found == {"tinyint1-not-bool", "to-nullable"}


@pytest.mark.parametrize(
    ("data_format", "names", "message"),
    [
        ("canal-json", "[tinyint1-no-bool]", "no type mapping 'tinyint1-no-bool'"),
        ("ogg-json", "[longtext-to-bytes]", "has no effect on ogg-json"),
        ("raw", "[to-string]", "has no effect on raw"),
    ],
)
def test_names_that_could_not_be_honoured_are_refused(
    tmp_path: Path, data_format: str, names: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        mapping(tmp_path, data_format, names)
