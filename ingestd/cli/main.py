"""The command line: names of commands, errors as one message, exit codes.

A command's module is imported when the command runs, so that `ingestd --help` is quick.
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
"""Nobody reads the output any more; as shells have it: 128 and the number of SIGPIPE."""
_UNREADABLE = 4
_DEBUG = "--debug"


class CommandInfo(NamedTuple):
    """Where a command is, and what it does in one line.

    The function, or the group of commands, has the command's name, with _ for -.
    """

    module: str
    help: str


COMMANDS: Mapping[str, CommandInfo] = {
    "run": CommandInfo("ingestd.cli.run", "Run a pipeline: Kafka topics into tables."),
    "init": CommandInfo("ingestd.cli.init", "Write a first configuration from what brokers hold."),
    "validate": CommandInfo("ingestd.cli.validate", "Check a configuration and show what it is."),
    "plan": CommandInfo("ingestd.cli.plan", "Show what a pipeline would do, and do nothing."),
    "parse": CommandInfo("ingestd.cli.parse", "Show what a data format makes of messages."),
    "import-paimon-cdc": CommandInfo(
        "ingestd.cli.import_paimon_cdc", "Make a configuration of a Flink ingestion job."
    ),
    "watch": CommandInfo("ingestd.cli.watch", "Show what a running daemon does, as it does it."),
    "read": CommandInfo("ingestd.cli.read", "Print the rows of a table, or its changes."),
    "tables": CommandInfo("ingestd.cli.tables", "List the tables of a warehouse."),
    "snapshots": CommandInfo("ingestd.cli.tables", "List the snapshots of a table."),
    "files": CommandInfo("ingestd.cli.tables", "List the data files of a snapshot."),
    "schema": CommandInfo("ingestd.cli.tables", "Show the columns and options of a table."),
    "truncate": CommandInfo("ingestd.cli.table_commands", "Empty a table, or one partition of it."),
    "drop-partition": CommandInfo("ingestd.cli.table_commands", "Drop partitions of a table."),
    "analyze": CommandInfo("ingestd.cli.table_commands", "Compute statistics and keep them."),
    "expire": CommandInfo(
        "ingestd.cli.expire", "Expire snapshots, changelogs, partitions and tags."
    ),
    "remove-orphans": CommandInfo(
        "ingestd.cli.remove_orphans", "Delete files that no snapshot refers to."
    ),
    "begin": CommandInfo("ingestd.cli.begin", "Say from where on a table is fed."),
    "rollback": CommandInfo("ingestd.cli.rollback", "Go back to an older snapshot, offsets too."),
    "compact": CommandInfo("ingestd.cli.compact", "Put the files of a table together."),
    "rebuild-index": CommandInfo(
        "ingestd.cli.rebuild_index", "Rebuild missing or corrupt hash indexes."
    ),
    "rescale": CommandInfo("ingestd.cli.rescale", "Give a table another number of buckets."),
    "tag": CommandInfo("ingestd.cli.tag", "Create, list and delete tags."),
    "branch": CommandInfo("ingestd.cli.branch", "Create, list, delete and forward branches."),
    "consumer": CommandInfo("ingestd.cli.consumer", "List, reset and delete consumers."),
    "dlq": CommandInfo("ingestd.cli.dlq", "List, show, replay and purge dead letters."),
    "verify": CommandInfo("ingestd.cli.verify", "Check that a table is sound, down to its rows."),
    "demo": CommandInfo("ingestd.cli.demo", "See it all work on this machine, with a real broker."),
}


class _LazyGroup(TyperGroup):
    """Lists commands by their placeholders; the one that was called is loaded."""

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
    """Import a command's module and make the command of its function, or of its group."""
    function = getattr(importlib.import_module(COMMANDS[name].module), name.replace("-", "_"))
    if isinstance(function, typer.Typer):
        return add_catalog_options(typer.main.get_command(function))
    single = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )
    single.command(name, context_settings={"help_option_names": ["-h", "--help"]})(function)
    return add_catalog_options(typer.main.get_command(single))


def _placeholder() -> None:
    """Stands in the list of commands for one that is not loaded yet."""


for _name, _info in COMMANDS.items():
    app.command(_name, help=_info.help)(_placeholder)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"ingestd {importlib.metadata.version('ingestd')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option(_DEBUG, help="Show where in the code it failed.")] = False,
) -> None:
    """Kafka change streams into Apache Paimon tables, exactly once.

    Begin with `ingestd demo`, or with `ingestd init`, `ingestd plan -c FILE` and
    `ingestd run -c FILE`. Exit codes: 0 fine, 1 findings or unexpected, 2 configuration or
    usage, 3 Kafka, 4 warehouse, 5 stopped by policy, 6 another daemon has taken over,
    130 interrupted, 141 nobody reads the output any more.
    """


def main() -> NoReturn:
    """Run the command line of this process and end it."""
    if _DEBUG not in sys.argv:
        sys.excepthook = _tell_unexpected
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. Errors are printed as one message."""
    debug = _DEBUG in arguments
    configure_logging("DEBUG" if debug else "WARNING", "text")
    try:
        app(args=[one for one in arguments if one != _DEBUG], prog_name="ingestd")
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
    """Print an error; secrets struck out, nothing that a terminal would obey."""
    if debug:
        say(redact("".join(traceback.format_exception(error))), err=True)
    text = "\n".join(printable(line) for line in redact(message).splitlines())
    colour = None if os.environ.get("NO_COLOR") else "red"
    say("error: ", colour=colour, bold=True, err=True, nl=False)
    say(text, err=True)


def _tell_unexpected(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """What Python calls for an error that nobody foresaw; it then ends with 1."""
    message = f"unexpected {kind.__name__}: {error}\nAdd {_DEBUG} to see where, and report it."
    _tell(error, message, debug=False)


if __name__ == "__main__":
    main()
