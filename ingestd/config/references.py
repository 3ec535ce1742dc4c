"""References to secrets: `${env:NAME}` and `${file:PATH}`.

They are resolved when the configuration is loaded, and registered as secrets that logs and messages
mask.
"""

import re
from collections.abc import Mapping
from pathlib import Path as FilePath

from ingestd.config.document import Document, Path, Tree, walk
from ingestd.config.validation_errors import ValidationIssue
from ingestd.log import add_secrets, is_secret_name

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_OTHER_DOLLARS = ("routing", "rules")
"""Where `${name}` is the group of a pattern."""
_MAX_BYTES = 64 << 10


class _UnresolvedError(Exception):
    """A reference that cannot be resolved."""


def holds_reference(text: str | None) -> bool:
    """Return whether a text contains a reference."""
    return text is not None and _REFERENCE.search(text) is not None


def resolve_references(
    document: Document, environ: Mapping[str, str], folder: FilePath
) -> tuple[Tree, list[ValidationIssue]]:
    """Return the tree with all references replaced, and the errors of unresolved ones.

    A relative path starts from `folder`. Line breaks at the end of a file are removed.
    """
    issues: list[ValidationIssue] = []

    def replaced(tree: Tree, path: Path) -> Tree:
        if path == _OTHER_DOLLARS:
            return tree
        if isinstance(tree, dict):
            return {name: replaced(child, (*path, name)) for name, child in tree.items()}
        if isinstance(tree, list):
            return [replaced(child, (*path, index)) for index, child in enumerate(tree)]
        if tree is None or not holds_reference(tree):
            return tree
        try:
            return _REFERENCE.sub(lambda match: _look_up(match[1], environ, folder), tree)
        except _UnresolvedError as error:
            issues.append(ValidationIssue.at(document, path, str(error)))
            return tree

    resolved = replaced(document.tree, ())
    _register(document.tree, resolved)
    return resolved, issues


def _register(raw: Tree, resolved: Tree) -> None:
    """Register secrets: values of references, and values under the name of a secret."""
    before = dict(walk(raw))
    add_secrets(
        value
        for path, value in walk(resolved)
        if value and (value != before[path] or is_secret_name(str(path[-1])))
    )


def _look_up(reference: str, environ: Mapping[str, str], folder: FilePath) -> str:
    kind, colon, name = reference.partition(":")
    if kind == "env" and name:
        if name not in environ:
            raise _UnresolvedError(f"environment variable {name} is not set")
        return environ[name]
    if kind == "file" and name:
        return _read(folder / name)
    raise _UnresolvedError(f"'${{{kind}{colon}...}}' is neither ${{env:NAME}} nor ${{file:PATH}}")


def _read(path: FilePath) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise _UnresolvedError(f"{path} is larger than {_MAX_BYTES} bytes")
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _UnresolvedError(f"{path} cannot be read: {type(error).__name__}") from error
