from pathlib import Path
from typing import Any

import pytest
import yaml

from ingestd.cli.demo import prepared, records_in_tables, write_config
from ingestd.config.load import load_config
from ingestd.dev.workload import Workload
from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import load_catalog


def test_an_empty_folder_is_taken_and_our_own_is_emptied(tmp_path: Path) -> None:
    root = prepared(tmp_path / "demo")
    (root / "old.txt").touch()
    assert [p.name for p in prepared(root).iterdir()] == [".ingestd-demo"]


def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="has contents other than a demo"):
        prepared(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_the_configuration_of_the_demo_is_valid(tmp_path: Path) -> None:
    path = write_config(tmp_path, Workload(events=1000), "127.0.0.1:9")
    load_config(path, {})
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    assert document["sources"]["shop"]["topics"] == ["shop.public.customers", "shop.public.orders"]


def test_an_empty_warehouse_covers_nothing(tmp_path: Path) -> None:
    assert records_in_tables(load_catalog("filesystem", str(tmp_path))) == 0
