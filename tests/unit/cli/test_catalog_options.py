from pathlib import Path

import pytest

from ingestd.cli import table_arguments
from ingestd.cli.catalog_options import CatalogChoice, _is_warehouse, chosen_catalog
from ingestd.cli.main import COMMANDS, load_command
from ingestd.paimon.catalog.base import Catalog
from tests.support.command_line import run_command
from tests.support.native_tables import native_table, put

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, CatalogChoice]]:
    """What catalogs were opened; each is that of the files."""
    put(native_table(tmp_path, [("id", "INT")], keys=["id"]), [{"id": 1}])
    seen: list[tuple[str, CatalogChoice]] = []
    load = table_arguments.load_catalog

    def remember(metastore: str, warehouse: str, options: dict[str, str]) -> Catalog:
        seen.append((warehouse, CatalogChoice(metastore, dict(options))))
        return load("filesystem", str(tmp_path))

    monkeypatch.setattr(table_arguments, "load_catalog", remember)
    return seen


def test_every_command_with_a_warehouse_opens_any_catalog() -> None:
    commands = {name: load_command(name) for name in COMMANDS}
    single = [one for group in commands.values() for one in _all(group)]
    names = [{option for param in one.params for option in param.opts} for one in single]
    having = [name for name in names if "--metastore" in name]
    assert all({"--uri", "--catalog-option"} <= found for found in having)
    warehouses = [one for one in single if any(map(_is_warehouse, one.params))]
    assert len(warehouses) == len(having) > 20
    # `init` has an option of this name, and opens no catalog.
    assert "--metastore" not in {option for p in load_command("init").params for option in p.opts}


def _all(command: object) -> list:  # type: ignore[type-arg]
    inner = getattr(command, "commands", {}).values()
    return [command, *inner]


def test_without_options_it_is_the_file_system(
    opened: list[tuple[str, CatalogChoice]], tmp_path: Path, capsys: Capture
) -> None:
    assert run_command(capsys, "read", tmp_path, "db.t").out == '{"id":1}\n'
    assert opened == [(str(tmp_path), CatalogChoice())]


@pytest.mark.parametrize(
    "given",
    [
        ("--metastore", "rest", "--uri", "http://h", "--catalog-option", "token-file=/t"),
        ("--catalog-option", "token-file=/t", "--uri", "http://h", "--metastore", "rest"),
    ],
)
def test_options_choose_a_catalog_in_any_order(
    opened: list[tuple[str, CatalogChoice]], capsys: Capture, given: tuple[str, ...]
) -> None:
    for command in (["read"], ["tag", "list"]):
        assert run_command(capsys, *command, "lake", "db.t", *given).code == 0
    chosen = CatalogChoice("rest", {"uri": "http://h", "token-file": "/t"})
    assert opened == [("lake", chosen)] * 2


def test_a_choice_is_over_with_its_command(
    opened: list[tuple[str, CatalogChoice]], tmp_path: Path, capsys: Capture
) -> None:
    run_command(capsys, "read", "lake", "db.t", "--metastore", "rest", "--uri", "http://h")
    run_command(capsys, "read", tmp_path, "db.t")
    assert opened[-1][1] == CatalogChoice()
    assert chosen_catalog() == CatalogChoice()


def test_an_option_without_a_value_is_refused(tmp_path: Path, capsys: Capture) -> None:
    done = run_command(capsys, "read", tmp_path, "db.t", "--catalog-option", "uri")
    assert done.code == 2
    assert "NAME=VALUE" in done.err
    done = run_command(capsys, "read", tmp_path, "db.t", "--metastore", "paper")
    assert done.code == 2
    assert "paper" in done.err
