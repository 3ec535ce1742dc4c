"""Commands that pages show without a table to run them on: make, measurements, options in text."""

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from bench.measures import MEASURES
from bench.run import chosen_arguments
from ingestd.cli.main import COMMANDS, load_command
from ingestd.config.load import load_config
from tests.support.code_blocks import ROOT, code_blocks, followed_pages, shown
from tests.support.command_line import run_command
from tests.support.newcomer import first_commands

Capture = pytest.CaptureFixture[str]
MAKEFILE = (ROOT / "Makefile").read_text()
JOB = """flink run paimon-flink-action.jar kafka_sync_database --warehouse /lake --database ods \
--kafka_conf properties.bootstrap.servers=broker-0:9092 --kafka_conf topic=orders \
--kafka_conf value.format=debezium-json --kafka_conf scan.startup.mode=earliest-offset
"""
INLINE = re.compile(r"`(ingestd [a-z][^`\n]*)`")


def test_the_newcomer_plays_the_first_commands() -> None:
    """They are played by `make newcomer`, from the page; here, that it still finds them there."""
    block = shown("README.md", "make demo")
    commands = first_commands((ROOT / "README.md").read_text("utf-8"))
    assert [line.partition("#")[0].strip() for line in block.text.splitlines()] == commands
    assert commands == ["make demo", "make test"]


def test_every_make_target_can_be_made() -> None:
    """make says what it would do; that these do their work is CI's and other tests' to say."""
    lines = [line for page in followed_pages() for code_block in code_blocks(page)
             for line in code_block.text.splitlines() if line.startswith("make ")]  # fmt: skip
    targets = sorted({line.split()[1] for line in lines})
    assert len(targets) > 8
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target
    command = ["make", "--dry-run", "--always-make", *targets]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_measurements_take_the_options_that_are_shown() -> None:
    block = shown("bench/README.md", "make bench")
    lines = [
        shlex.split(line, comments=True) for line in block.text.splitlines() if "bench." in line
    ]
    assert len(lines) == 6
    known = {measure.name for measure in MEASURES}
    for words in lines:
        assert words[:2] == [".venv/bin/python", "-m"]
        assert (ROOT / f"{words[2].replace('.', '/')}.py").exists()
        if words[2] == "bench.run":
            chosen = chosen_arguments(words[3:])
            assert {one.partition("/")[0] for one in chosen.only} <= known


def test_a_job_becomes_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The first line; the two after it are the README's, and are run there."""
    imported, *others = shown("docs/migration.md", "ingestd import-").text.splitlines()
    assert imported == "ingestd import-paimon-cdc - < job.sh > ingestd.yaml"
    monkeypatch.setattr(sys, "stdin", io.StringIO(JOB))
    done = run_command(capsys, *imported.split()[1:3])
    assert done.code == 0, done.err
    file = tmp_path / "ingestd.yaml"
    file.write_text(done.out)
    load_config(file, {})
    assert [unknown_option(line) for line in others] == [None, None]


def test_parts_of_a_configuration_fit_the_rest_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTICES_SECRET", "whsec_" + "QUJD" * 8)
    source = "{kafka: {bootstrap.servers: 'b:9092'}, topics: [orders], format: debezium-json}"
    sources = f"sources: {{shop: {source}}}\n"
    smallest = f"warehouse: {{path: /lake}}\n{sources}"
    file = tmp_path / "ingestd.yaml"
    for page, first in (
        ("docs/operations.md", "telemetry:"),
        ("docs/maintenance.md", "tables:"),
        ("docs/iceberg.md", "tables:"),
        ("docs/iceberg.md", "# with deletion vectors"),
        ("docs/notices.md", "# notices.yaml"),
    ):
        file.write_text(smallest + shown(page, first).text)
        load_config(file)
    monkeypatch.setenv("CATALOG_PASSWORD", "hunter22")
    file.write_text(sources + shown("docs/catalogs.md", "warehouse:").text)
    load_config(file)
    monkeypatch.setenv("DLF_KEY_ID", "id")
    (tmp_path / "dlf-key").write_text("key")
    for first in ("catalog:", "# Alibaba Cloud DLF"):
        shown_text = shown("docs/catalogs.md", first).text.replace("/run/secrets", str(tmp_path))
        catalog = indent(shown_text, "  ")
        file.write_text(f"{sources}warehouse:\n  path: /lake\n{catalog}")
        load_config(file)


def unknown_option(line: str) -> str | None:
    """What a line has that its command does not; None if there is nothing."""
    words = shlex.split(line)[1:]
    command = load_command(words[0])
    if hasattr(command, "commands"):
        if len(words) == 1 or words[1] not in command.commands:
            return None if len(words) == 1 else f"{line}: no command {words[1]}"
        command = command.commands[words[1]]
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    given = {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)}
    strange = sorted(given - known - {"--help", "-h"})
    return f"{line}: no option {', '.join(strange)}" if strange else None


@pytest.mark.parametrize("page", followed_pages(), ids=lambda page: page.name)
def test_options_of_commands_in_the_text_exist(page: Path) -> None:
    lines = [line for line in INLINE.findall(page.read_text()) if line.split()[1] in COMMANDS]
    assert [found for line in lines if (found := unknown_option(line))] == []


def test_an_unknown_option_is_found() -> None:
    assert unknown_option("ingestd read LAKE shop.orders --nope") is not None
    assert unknown_option("ingestd tag create LAKE shop.orders x --nope") is not None
    assert unknown_option("ingestd tag made LAKE shop.orders x") is not None
    assert unknown_option("ingestd parse -c FILE --topic orders --offset -1") is None
