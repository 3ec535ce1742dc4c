"""What the documentation shows can be done as it is shown."""

import re
from pathlib import Path

import pytest

from ingestd.cli.main import COMMANDS
from ingestd.config.load import load_config

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_first_pipeline_of_the_readme_is_valid_and_short(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(block.splitlines()) <= 17
    file = tmp_path / "ingestd.yaml"
    file.write_text(block)
    load_config(file, {})


def _pipelines() -> list[tuple[str, str]]:
    found = [
        (page.name, block)
        for page in TEXTS
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    ]
    return [(name, block) for name, block in found if "pipeline:" in block]


@pytest.mark.parametrize(
    "block", [block for _, block in _pipelines()], ids=[name for name, _ in _pipelines()]
)
def test_pipelines_that_are_shown_are_valid(block: str, tmp_path: Path) -> None:
    file = tmp_path / "ingestd.yaml"
    file.write_text(block)
    load_config(file, {})


def test_the_example_with_everything_is_valid() -> None:
    load_config(ROOT / "config" / "ingestd.yaml", {"KAFKA_PASSWORD": "secret"})


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_commands_that_are_shown_exist(page: Path) -> None:
    command = r"(?:^    |`)ingestd ([a-z_]+(?:-[a-z]+)*)"
    shown = set(re.findall(command, page.read_text(), re.MULTILINE))
    assert shown <= COMMANDS.keys()


def test_every_command_is_in_the_readme_or_a_page_of_operation() -> None:
    pages = (
        "README.md",
        "docs/operations.md",
        "docs/maintenance.md",
        "docs/dead-letters.md",
        "docs/deployment.md",
    )
    text = "".join((ROOT / page).read_text() for page in pages)
    assert [name for name in COMMANDS if f"ingestd {name}" not in text and name != "demo"] == []


def test_make_targets_that_are_shown_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in TEXTS:
        assert set(re.findall(r"\bmake ([a-z]+)(?=`|\s\s)", page.read_text())) <= targets, page.name
