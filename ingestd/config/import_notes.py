"""Keys and notes of an imported configuration, and their YAML text.

A piece is one argument of another tool, with the keys that replace it. A piece that prevents the
configuration from loading is left out, with a note; the YAML text has the notes as comments.
"""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from ingestd.config.document import Path, parse_document
from ingestd.config.load import load_document
from ingestd.errors import ConfigError
from ingestd.log import printable

Tree = dict[str, Any]
Validate = Callable[[Tree], str | None]
"""Returns the reason why a document does not load, or None if it loads."""
_WIDTH = 100
_NAME = "the result"


@dataclass(frozen=True, slots=True)
class Piece:
    """One argument of the imported command, with the configuration values that replace it.

    `entries` maps paths to values; lists are appended to existing lists. `essential` is whether
    leaving the piece out changes the result, and `needed` whether no configuration loads without
    it.
    """

    argument: str
    entries: Mapping[Path, Any]
    essential: bool = True
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A note on an argument; `essential` is whether the result differs because of the argument."""

    argument: str
    text: str
    essential: bool = False


@dataclass(slots=True)
class ImportNotes:
    """The result of an import: pieces in order, and notes on arguments without a counterpart."""

    pieces: list[Piece] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def take(self, argument: str, path: Path, value: Any, *, essential: bool = True) -> None:  # noqa: ANN401  (part of a document)
        """Import an argument of another tool as one configuration key.

        `path` is the key, `value` its value; `essential` is whether leaving it out changes the
        result.
        """
        self.pieces.append(Piece(argument, {path: value}, essential))

    def leave(self, argument: str, text: str, *, essential: bool = False) -> None:
        """Add a note on an argument that has no counterpart in the configuration.

        `essential` is whether leaving it out changes the result.
        """
        self.notes.append(Note(argument, text, essential))


def assemble(imported: ImportNotes, validate: Validate) -> tuple[Tree, list[Note]]:
    """Return a configuration of the pieces that load together, and all notes.

    `validate` returns the reason why a configuration does not load, or None. If all pieces together
    do not load, they are added to the needed ones one after the other; each piece that prevents
    loading is left out and gets a note. If the needed pieces alone do not load, the configuration
    consists of these, and a note states why.
    """
    whole = _document(imported.pieces)
    if validate(whole) is None:
        return whole, imported.notes
    kept = [piece for piece in imported.pieces if piece.needed]
    notes = list(imported.notes)
    problem = validate(_document(kept))
    if problem is not None:
        return _document(kept), [*notes, Note("the configuration", problem, essential=True)]
    for piece in imported.pieces:
        if piece.needed:
            continue
        tried = [
            kept_piece
            for kept_piece in imported.pieces
            if kept_piece in kept or kept_piece is piece
        ]
        problem = validate(_document(tried))
        if problem is None:
            kept.append(piece)
        else:
            notes.append(Note(piece.argument, problem, piece.essential))
    return _document([kept_piece for kept_piece in imported.pieces if kept_piece in kept]), notes


def _document(pieces: Sequence[Piece]) -> Tree:
    tree: Tree = {}
    for piece in pieces:
        for path, value in piece.entries.items():
            _set_value(tree, path, deepcopy(value))
    return tree


def _set_value(tree: Tree, path: Path, value: Any) -> None:  # noqa: ANN401  (part of a document)
    *folders, name = map(str, path)
    for folder in folders:
        tree = tree.setdefault(folder, {})
    known = tree.get(name)
    if isinstance(known, list) and isinstance(value, list):
        known.extend(value)
    else:
        tree[name] = value


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
    """Return a document as YAML text; comments before it contain the title and the notes."""
    lines = [f"# {title}"]
    groups = (
        ("Not imported, and the result differs because of it:", True),
        ("Not imported, without effect on the result, or worth knowing:", False),
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
    """Return the reason why a configuration does not load, or None if it loads.

    All environment variables count as set, because they are set where the configuration will run.
    """
    try:
        document = parse_document(yaml.safe_dump(tree, sort_keys=False), _NAME)
        load_document(document, FilePath("/"), _AnyVariable())
    except ConfigError as error:
        issues = error.message.splitlines()[1:] or [error.message]
        return "; ".join(issue.strip().partition(": ")[2] or issue.strip() for issue in issues)
    return None


def _comment(text: str) -> list[str]:
    """Return a text as YAML comment lines of limited width."""
    plain = printable(" ".join(text.split()))
    return textwrap.wrap(
        plain,
        _WIDTH,
        initial_indent="#   ",
        subsequent_indent="#     ",
        break_long_words=False,
        break_on_hyphens=False,
    )
