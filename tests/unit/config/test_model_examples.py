"""The commented example and the small ones beside it load, and the former is complete."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.config.allowed_keys import ConfigShape, shape_of
from ingestd.config.document import Tree, read_document
from ingestd.config.effective import DEFAULT, effective_settings
from ingestd.config.load import load_config
from ingestd.config.model import Config

FOLDER = Path(__file__).resolve().parents[3] / "config"
COMPLETE = FOLDER / "ingestd.yaml"
EXAMPLES = sorted([COMPLETE, *(FOLDER / "examples").glob("*.yaml")])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_load(path: Path) -> None:
    load_config(path, {"INVENTORY_KAFKA_PASSWORD": "not-a-real-one"})


def missing(shape: ConfigShape, tree: Tree, path: str = "") -> Iterator[str]:
    """Keys of the model that the tree does not show."""
    if not isinstance(tree, dict):
        return
    if shape.element is not None:
        for name, one in tree.items():
            yield from missing(shape.element, one, f"{path}.{name}")
    for key, below in shape.keys.items():
        if key in tree:
            yield from missing(below, tree[key], f"{path}.{key}")
        else:
            yield f"{path}.{key}"


def test_the_commented_example_shows_every_key() -> None:
    absent = set(missing(shape_of(Config), read_document(COMPLETE).tree))
    # Shown in comments: keys that exclude others which are shown.
    assert absent == {
        ".sources.shop.topics",
        ".sources.shop.schema-registry",
        ".sources.shop.startup-timestamp-millis",
        ".sources.shop.startup-specific-offsets",
        ".sources.shop.bounded-timestamp-millis",
        ".sources.shop.bounded-specific-offsets",
        ".errors.dead-letter-topic",
        ".tables.orders.select.include",
        ".defaults.watermark",
        ".tables.orders.watermark",
        ".warehouse.catalog.uri",
        ".warehouse.catalog.warehouse",
        ".warehouse.catalog.token",
        ".warehouse.catalog.auth-file",
        ".warehouse.catalog.options",
        ".warehouse.catalog.password",
        ".warehouse.catalog.user",
        ".http.tls-certificate",
        ".http.tls-key",
        ".http.auth-file",
        ".notices.url",
        ".notices.signing-secret",
        ".notices.ssl-ca-location",
    }
    for key in (
        "topics: [",
        "# schema-registry:",
        "#   startup-timestamp-millis: ",
        "#   startup-specific-offsets: ",
        "#   bounded-timestamp-millis: ",
        "#   bounded-specific-offsets: ",
        "# dead-letter-topic: ",
        "# include: [",
        "# uri: ",
        "# warehouse: ",
        "# token: ",
        "# auth-file: ",
        "# tls-certificate: ",
        "# tls-key: ",
        "#   url: ",
        "#   signing-secret: ",
        "#   ssl-ca-location: ",
    ):
        assert key in COMPLETE.read_text()


def test_values_that_are_not_marked_as_examples_are_the_defaults(tmp_path: Path) -> None:
    defaults = {
        effective_setting.key: effective_setting.value
        for effective_setting in effective_settings(
            load_config(FOLDER / "examples" / "smallest.yaml", {})
        )
        if effective_setting.origin == DEFAULT
    }
    marked = ("pipeline.name", "pipeline.formerly", "warehouse.database", "topic-pattern",
              "topic-exclude", "write-tasks", "routing.rules", "max-rejected-records",
                  "max-rejected-ratio", "max-unreadable-tries", "telemetry.endpoint")  # fmt: skip
    different = [
        effective_setting.key
        for effective_setting in effective_settings(load_config(COMPLETE, {}))
        if effective_setting.key in defaults
        and effective_setting.value != defaults[effective_setting.key]
        and not effective_setting.key.endswith(marked)
    ]
    assert different == []
