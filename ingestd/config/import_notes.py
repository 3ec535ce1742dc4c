"""Arguments of another tool as keys of a configuration, and notes on what was not imported.

A piece is one argument with the keys that it becomes. A piece with which the configuration does not
load is left out, with a note.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from ingestd.config.document import Path

Tree = dict[str, Any]
Judge = Callable[[Tree], str | None]
"""Says what is wrong with a document, None if it loads."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An argument and the values by path that it becomes; lists are appended to.

    `essential`: leaving it out changes the result. `needed`: no configuration loads without it.
    """

    argument: str
    entries: Mapping[Path, Any]
    essential: bool = True
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A note on an argument; `essential` if the result differs because of it."""

    argument: str
    text: str
    essential: bool = False


@dataclass(slots=True)
class ImportNotes:
    """Pieces in order, and notes on arguments without a counterpart."""

    pieces: list[Piece] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def take(self, argument: str, path: Path, value: Any, *, essential: bool = True) -> None:  # noqa: ANN401  (part of a document)
        """Import an argument as one key."""
        self.pieces.append(Piece(argument, {path: value}, essential))

    def leave(self, argument: str, text: str, *, essential: bool = False) -> None:
        """Note an argument that is not imported."""
        self.notes.append(Note(argument, text, essential))


def assemble(carried: ImportNotes, judge: Judge) -> tuple[Tree, list[Note]]:
    """Return the document of all pieces with which it loads, and all notes.

    Pieces are tried together; if that does not load, one after the other.
    """
    whole = _document(carried.pieces)
    if judge(whole) is None:
        return whole, carried.notes
    kept = [piece for piece in carried.pieces if piece.needed]
    notes = list(carried.notes)
    problem = judge(_document(kept))
    if problem is not None:
        return _document(kept), [*notes, Note("the configuration", problem, essential=True)]
    for piece in carried.pieces:
        if piece.needed:
            continue
        tried = [one for one in carried.pieces if one in kept or one is piece]
        problem = judge(_document(tried))
        if problem is None:
            kept.append(piece)
        else:
            notes.append(Note(piece.argument, problem, piece.essential))
    return _document([one for one in carried.pieces if one in kept]), notes


def _document(pieces: Sequence[Piece]) -> Tree:
    tree: Tree = {}
    for piece in pieces:
        for path, value in piece.entries.items():
            _place(tree, path, deepcopy(value))
    return tree


def _place(tree: Tree, path: Path, value: Any) -> None:  # noqa: ANN401  (part of a document)
    *folders, name = map(str, path)
    for folder in folders:
        tree = tree.setdefault(folder, {})
    known = tree.get(name)
    if isinstance(known, list) and isinstance(value, list):
        known.extend(value)
    else:
        tree[name] = value
