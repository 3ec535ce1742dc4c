"""The entry point of the command line: commands, error messages and exit codes.

The module of a command is imported when the command runs, so that `ingestd --help` is fast.
"""

import importlib
import importlib.metadata
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperGroup

from ingestd.cli.catalog_options import add_catalog_options
from ingestd.cli.interrupts import EXIT_CODE, interrupt_message
from ingestd.cli.output import say
from ingestd.errors import IngestdError
from ingestd.log import configure_logging, printable, redact

READER_GONE = 141
"""Exit code if the reader of the output has closed it, as in shells: 128 plus SIGPIPE's number."""
_UNREADABLE = 4
_DEBUG = "--debug"


class CommandInfo(NamedTuple):
    """The module of a command, and its help in one line.

    The function or group in the module has the name of the command, with underscores for hyphens.
    """

    module: str
    help: str


COMMANDS: Mapping[str, CommandInfo] = {
    "run": CommandInfo("ingestd.cli.run", "Run a pipeline: Kafka topics into tables."),
    "init": CommandInfo(
        "ingestd.cli.init", "Write a first configuration from the topics of a cluster."
    ),
    "validate": CommandInfo("ingestd.cli.validate", "Check a configuration and show its values."),
    "config": CommandInfo("ingestd.cli.config", "Print the JSON Schema of configuration files."),
    "plan": CommandInfo("ingestd.cli.plan", "Show what a pipeline would do to its tables."),
    "parse": CommandInfo("ingestd.cli.parse", "Decode messages and print their rows."),
    "import-paimon-cdc": CommandInfo(
        "ingestd.cli.import_paimon_cdc", "Convert a Flink CDC job to a configuration."
    ),
    "watch": CommandInfo("ingestd.cli.watch", "Show the live status of a running daemon."),
    "diagnose": CommandInfo(
        "ingestd.cli.diagnose", "Write an archive about a pipeline, without secrets."
    ),
    "read": CommandInfo("ingestd.cli.read", "Print the rows of a table, or its changes."),
    "get": CommandInfo("ingestd.cli.get", "Print the rows with given primary keys."),
    "tables": CommandInfo("ingestd.cli.tables", "List the tables of a warehouse."),
    "snapshots": CommandInfo("ingestd.cli.tables", "List the snapshots of a table."),
    "files": CommandInfo("ingestd.cli.tables", "List the data files of a snapshot."),
    "schema": CommandInfo("ingestd.cli.tables", "Show the columns and options of a table."),
    "truncate": CommandInfo("ingestd.cli.table_commands", "Empty a table, or one partition of it."),
    "drop-partition": CommandInfo("ingestd.cli.table_commands", "Drop partitions of a table."),
    "analyze": CommandInfo(
        "ingestd.cli.table_commands", "Compute and store statistics of a table."
    ),
    "expire": CommandInfo(
        "ingestd.cli.expire", "Expire snapshots, changelogs, partitions and tags."
    ),
    "remove-orphans": CommandInfo(
        "ingestd.cli.remove_orphans", "Delete files that no snapshot refers to."
    ),
    "begin": CommandInfo("ingestd.cli.begin", "Set the offsets from which a table is written."),
    "rollback": CommandInfo(
        "ingestd.cli.rollback", "Roll back to an older snapshot and its offsets."
    ),
    "compact": CommandInfo("ingestd.cli.compact", "Compact a table."),
    "rebuild-index": CommandInfo(
        "ingestd.cli.rebuild_index", "Rebuild missing or corrupt hash indexes."
    ),
    "rewrite-file-index": CommandInfo(
        "ingestd.cli.rewrite_file_index", "Write file indexes for existing data files."
    ),
    "repair": CommandInfo("ingestd.cli.repair", "Bring Iceberg metadata of a table up to date."),
    "rescale": CommandInfo("ingestd.cli.rescale", "Change the number of buckets of a table."),
    "tag": CommandInfo("ingestd.cli.tag", "Create, list and delete tags."),
    "branch": CommandInfo("ingestd.cli.branch", "Create, list, delete and fast-forward branches."),
    "consumer": CommandInfo("ingestd.cli.consumer", "List, reset and delete consumers."),
    "dlq": CommandInfo("ingestd.cli.dlq", "List, count, show, replay and purge dead letters."),
    "verify": CommandInfo("ingestd.cli.verify", "Check the integrity of a table."),
    "compare": CommandInfo(
        "ingestd.cli.compare", "Compare tables with those of the source database."
    ),
    "demo": CommandInfo("ingestd.cli.demo", "Run a demo on this machine, with a real broker."),
    "executor": CommandInfo(
        "ingestd.cli.executor", "Run a Spark executor in a pod that Spark created."
    ),
}


class _LazyGroup(TyperGroup):
    """A group of placeholders, each of which is replaced by its command when that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401  (typer keeps the types private)
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder and load_command(str(name)), rest


app = typer.Typer(
    cls=_LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def load_command(name: str) -> Any:  # noqa: ANN401  (typer keeps the type private)
    """Import the module of a command, and return its command or group with the catalog options.

    `name` is a key of `COMMANDS`.
    """
    function = getattr(importlib.import_module(COMMANDS[name].module), name.replace("-", "_"))
    if isinstance(function, typer.Typer):
        return add_catalog_options(typer.main.get_command(function))
    single = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )
    single.command(name, context_settings={"help_option_names": ["-h", "--help"]})(function)
    return add_catalog_options(typer.main.get_command(single))


def _placeholder() -> None:
    """Stand in for a command that is not loaded yet."""


for _name, _info in COMMANDS.items():
    app.command(_name, help=_info.help)(_placeholder)


def _version(requested: bool) -> None:
    if requested:
        say(f"ingestd {importlib.metadata.version('ingestd')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option(_DEBUG, help="Print the stack trace of an error.")] = False,
) -> None:
    """Kafka change streams into Apache Paimon tables, exactly once.

    Begin with `ingestd demo`, or with `ingestd init`, `ingestd plan -c FILE` and
    `ingestd run -c FILE`. Exit codes: 0 success, 1 findings or unexpected, 2 configuration or
    usage, 3 Kafka, 4 warehouse, 5 stopped by policy, 6 another daemon has taken over,
    130 interrupted, 141 the reader of the output has closed it.
    """


def main() -> NoReturn:
    """Run the command line of this process, and exit with its exit code."""
    if _DEBUG not in sys.argv:
        sys.excepthook = _tell_unexpected
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    An IngestdError, an OSError or an interrupt (Ctrl-C) is printed as one message; other errors are
    raised.
    """
    debug = _DEBUG in arguments
    configure_logging("DEBUG" if debug else "WARNING", "text")
    try:
        app(args=[argument for argument in arguments if argument != _DEBUG], prog_name="ingestd")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            return READER_GONE
        if end.code == EXIT_CODE:
            say(f"interrupted: {interrupt_message(end)}", err=True)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except IngestdError as error:
        _tell(error, error.message, debug=debug)
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        say(f"interrupted: {interrupt_message(interrupt)}", err=True)
        return EXIT_CODE
    except OSError as error:
        _tell(error, f"a file cannot be used: {error}", debug=debug)
        return _UNREADABLE
    return 0


def _tell(error: BaseException, message: str, *, debug: bool) -> None:
    """Print the message of an error, and with `debug` its stack trace before.

    Secrets are masked and control characters escaped.
    """
    if debug:
        say(redact("".join(traceback.format_exception(error))), err=True)
    text = "\n".join(printable(line) for line in redact(message).splitlines())
    colour = None if os.environ.get("NO_COLOR") else "red"
    say("error: ", colour=colour, bold=True, err=True, nl=False)
    say(text, err=True)


def _tell_unexpected(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an unexpected error; used as `sys.excepthook`, after which Python exits with 1."""
    message = f"unexpected {kind.__name__}: {error}\nAdd {_DEBUG} to see where, and report it."
    _tell(error, message, debug=False)


if __name__ == "__main__":
    main()
