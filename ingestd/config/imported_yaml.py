"""Commented YAML of an imported configuration."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath

import yaml

from ingestd.config.document import parse_document
from ingestd.config.import_notes import Note, Tree
from ingestd.config.load import load_document
from ingestd.errors import ConfigError
from ingestd.log import printable

_WIDTH = 100
_NAME = "the result"


class _AnyVariable(Mapping[str, str]):
    """An environment in which every variable is set."""

    def __getitem__(self, name: str) -> str:
        return f"<value of {name}>"

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def render(tree: Tree, notes: Sequence[Note], title: str) -> str:
    """Return the YAML text after a comment for each note, essential notes first."""
    lines = [f"# {title}"]
    groups = (
        ("Not carried over, and the result is another one without it:", True),
        ("Not carried over, or worth knowing:", False),
    )
    for heading, essential in groups:
        chosen = [note for note in notes if note.essential is essential]
        if chosen:
            lines += ["#", f"# {heading}"]
        for note in chosen:
            lines += _comment(f"{note.argument}: {note.text}")
    text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return "\n".join([*lines, "", text])


def validation_error_of(tree: Tree) -> str | None:
    """Return why a configuration does not load, None if it does.

    Environment variables count as set: they are set where the configuration will run.
    """
    try:
        document = parse_document(yaml.safe_dump(tree, sort_keys=False), _NAME)
        load_document(document, FilePath("/"), _AnyVariable())
    except ConfigError as error:
        issues = error.message.splitlines()[1:] or [error.message]
        return "; ".join(issue.strip().partition(": ")[2] or issue.strip() for issue in issues)
    return None


def _comment(text: str) -> list[str]:
    """Return a text as comment lines."""
    plain = printable(" ".join(text.split()))
    return textwrap.wrap(
        plain,
        _WIDTH,
        initial_indent="#   ",
        subsequent_indent="#     ",
        break_long_words=False,
        break_on_hyphens=False,
    )
