import inspect
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ingestd.cli import main
from ingestd.cli.main import COMMANDS, load_command
from ingestd.errors import FencedError
from tests.support.command_line import run_command

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("NO_COLOR", "1")


def leaves(name: str) -> dict[str, Any]:
    """A command by its full name, or the commands of a group."""
    command = load_command(name)
    below = getattr(command, "commands", {"": command})
    return {f"{name} {one}".strip(): leaf for one, leaf in below.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_that_teaches_by_example(name: str, capsys: Capture) -> None:
    for full, leaf in leaves(name).items():
        done = run_command(capsys, *full.split(), "--help")
        about, _, lines = done.out.partition("Examples")
        assert (done.code, f"ingestd {full}" in lines) == (0, True), full
        assert len(about.split()) > len(full.split()) + 5, full
        assert [param.name for param in leaf.params if not param.help] == [], full


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_a_command_line_that_can_be_given(name: str) -> None:
    for full, leaf in leaves(name).items():
        text = inspect.cleandoc(leaf.help).replace("\\\\", "\\").partition("**Examples**")[2]
        meant = [ingestd_words(line) for line in text.splitlines() if line.strip()]
        assert any(words[: len(full.split())] == full.split() for words in meant), full
        for words in meant:
            every = leaves(words[0])
            own = next(one for one in every if words[: len(one.split())] == one.split())
            every[own].make_context(own, words[len(own.split()) :])


def ingestd_words(line: str) -> list[str]:
    """What the shell would give to ingestd, without pipes, redirections and variables."""
    words = shlex.split(line.strip())
    words = words[words.index("ingestd") + 1 :]
    ends = [words.index(one) for one in ("<", ">", "&&") if one in words]
    return words[: min(ends, default=len(words))]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_the_function_of_its_name(name: str) -> None:
    assert load_command(name).name == name


@pytest.mark.parametrize(
    "name", [command for command in COMMANDS if command not in {"config", "executor"}]
)
def test_every_command_speaks_json(name: str) -> None:
    """`config schema` prints nothing else, and an executor is Spark's."""
    for full, leaf in leaves(name).items():
        assert "--json" in {option for param in leaf.params for option in param.opts}, full


@pytest.mark.parametrize(
    ("shell", "part"),
    [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "--no-files")],
)
def test_shells_get_a_script_for_completion(shell: str, part: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from ingestd.cli.main import main; main()"],
        env={**os.environ, "_INGESTD_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert part in done.stdout, done.stderr
    assert "_INGESTD_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("ingestd ver", "verify"),
        ("ingestd read --chan", "--changelog"),
        ("ingestd expire snap", "snapshots"),
    ],
)
def test_words_are_completed_by_the_shell(line: str, wanted: str) -> None:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", "from ingestd.cli.main import main; main()"],
        env={**os.environ, **words, "_INGESTD_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert wanted in done.stdout.split(), done.stderr


def test_help_lists_the_commands_without_loading_them() -> None:
    code = (
        "import sys; from ingestd.cli.main import execute; execute(['--help']);"
        "heavy = {'pyspark', 'pyarrow', 'pydantic', 'confluent_kafka'} & set(sys.modules);"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    for name, info in COMMANDS.items():
        assert name in done.stdout
        assert info.help in done.stdout


def test_the_version_is_that_of_the_package(capsys: Capture) -> None:
    done = run_command(capsys, "--version")
    assert done.code == 0
    assert done.out.startswith("ingestd 0.")


@pytest.mark.parametrize(
    "arguments",
    [["rum"], ["run"], ["read"], ["read", "/w", "a.b", "--format", "xml"], ["run", "--bogus"]],
)
def test_wrong_usage_is_two(arguments: list[str], capsys: Capture) -> None:
    assert run_command(capsys, *arguments).code == 2


def test_a_command_that_does_not_exist_names_the_nearest(capsys: Capture) -> None:
    assert "'read'" in run_command(capsys, "reed").err


def test_an_error_is_one_message_and_its_exit_code(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise FencedError("another daemon\nhas \x1b[31mtaken over")

    monkeypatch.setattr(main, "app", fail)
    done = run_command(capsys)
    assert done.code == 6
    assert done.err == "error: another daemon\nhas \\x1b[31mtaken over\n"


def test_debug_shows_where_it_failed(capsys: Capture) -> None:
    plain = run_command(capsys, "tables", "/does/not/exist")
    assert plain.code == 2
    assert plain.err == "error: there is no warehouse at /does/not/exist\n"
    debug = run_command(capsys, "tables", "/does/not/exist", "--debug")
    assert debug.code == 2
    assert "Traceback" in debug.err


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (OSError("full"), 4)])
def test_interruptions_and_files_have_codes_too(
    error: BaseException, code: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(main, "app", fail)
    assert run_command(capsys).code == code


PROGRAM = "import sys; from ingestd.cli import main; main.app = {0}; main.main()"


@pytest.mark.parametrize(
    ("arguments", "trace"), [(["x"], False), (["x", "--debug"], True), (["--debug", "x"], True)]
)
def test_an_error_that_nobody_foresaw_is_one_and_no_traceback_unless_asked_for(
    arguments: list[str], trace: bool
) -> None:
    code = PROGRAM.format("lambda **_: 1 / 0")
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 1
    assert ("Traceback" in done.stderr) is trace
    assert "division by zero" in done.stderr


@pytest.mark.parametrize("words", ["--help", "--version", "init --help", "tables . --json"])
def test_a_reader_that_has_gone_ends_a_command_in_silence(words: str, tmp_path: Path) -> None:
    """As `ingestd read ... | head` does."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from ingestd.cli.main import main; main()", *words.split()]
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(
            command, cwd=tmp_path, stdout=gone, stderr=subprocess.PIPE, timeout=180, check=False
        )
    assert (done.returncode, done.stderr) == (main.READER_GONE, b"")


def test_main_ends_the_process_with_the_code() -> None:
    command = [sys.executable, "-c", "from ingestd.cli.main import main; main()"]
    done = subprocess.run([*command, "rum"], capture_output=True, timeout=180, check=False)
    assert done.returncode == 2
    assert inspect.signature(main.main).parameters == {}


def test_the_package_is_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ingestd", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "ingestd", "")
