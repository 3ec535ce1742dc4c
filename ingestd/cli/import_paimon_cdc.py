"""`ingestd import-paimon-cdc`: convert a command of Paimon's Flink CDC to a configuration."""

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from ingestd.cli.output import AsJson, print_json, say
from ingestd.config.flink_command import parse_flink_command, shell_words
from ingestd.config.import_notes import Note, Tree, assemble, render, validation_error_of
from ingestd.config.paimon_cdc import import_command
from ingestd.log import printable, redact

_STDIN = "-"
_LOST = 1


def import_paimon_cdc(
    command_line: Annotated[
        str,
        typer.Argument(metavar="COMMAND", help="`flink run ...` in quotes; - is standard input."),
    ],
    keep_secrets: Annotated[
        bool, typer.Option("--keep-secrets", help="Print passwords instead of references to them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a configuration that does what a `kafka_sync_table` or `kafka_sync_database` job does.

    The command line is read as a shell would read it. The result has been loaded to check it;
    comments name every argument that has no counterpart, and why. Exit code 1 if the pipeline would
    behave differently without one of these arguments: check them before it runs.

    **Examples**

    ingestd import-paimon-cdc - < job.sh > shop.yaml

    ingestd import-paimon-cdc "$(cat job.sh)" --json

    ingestd validate -c shop.yaml --online && ingestd plan -c shop.yaml
    """
    text = sys.stdin.read() if command_line == _STDIN else command_line
    line = shell_words(text)
    command = parse_flink_command(line.words)
    imported = import_command(command, keep_secrets=keep_secrets)
    if line.rest:
        ends = line.rest.startswith((";", "|", "("))
        what = "to a shell the command ends before it; what follows was not read"
        imported.leave(line.rest, what, essential=ends)
    tree, notes = assemble(imported, validation_error_of)
    title = f"Converted from Paimon's {command.action} by ingestd import-paimon-cdc."
    _show(tree, notes, render(tree, notes, title), as_json=as_json)
    raise typer.Exit(_LOST if any(note.essential for note in notes) else 0)


def _show(tree: Tree, notes: list[Note], text: str, *, as_json: bool) -> None:
    lost = [note for note in notes if note.essential]
    if as_json:
        document = [asdict(note) for note in notes]
        print_json({"complete": not lost, "config": tree, "notes": document, "yaml": text})
        return
    say(text, nl=False)
    for note in lost:
        line = printable(redact(f"not imported: {note.argument}: {note.text}"))
        say(line, colour="yellow", err=True)
