"""Resolve references to secrets when a configuration is loaded, and mask the secrets in logs."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath

from ingestd.config.document import Document, Path, Tree, walk
from ingestd.config.validation_errors import ValidationIssue
from ingestd.log import add_secrets, is_secret_name
from ingestd.secret_references import (
    UnresolvedError,
    holds_reference,
    is_unclosed,
    resolve_parts,
)

_FEWEST_OF_A_PART = 8
"""Shorter values within a text, such as the name of an environment, are not masked alone."""
_PLACES = ("bootstrap.servers", "path")
"""Keys whose values are shown also if they come from references: they say where an error is."""
_OTHER_DOLLARS = ("routing", "rules")
"""The path below which `${name}` refers to a group of a pattern."""


def resolve_references(
    document: Document, environ: Mapping[str, str], folder: FilePath
) -> tuple[Tree, list[ValidationIssue]]:
    """Return the tree with its references replaced, and an issue for each unresolved reference.

    The path of a referenced file is relative to `folder`; line breaks at the end of the file are
    removed. All secrets are registered, so that logs mask them.
    """
    issues: list[ValidationIssue] = []

    def replaced(tree: Tree, path: Path) -> Tree:
        if path == _OTHER_DOLLARS:
            return tree
        if isinstance(tree, dict):
            return {name: replaced(child, (*path, name)) for name, child in tree.items()}
        if isinstance(tree, list):
            return [replaced(child, (*path, index)) for index, child in enumerate(tree)]
        if tree is not None and is_unclosed(tree):
            problem = "a reference lacks its closing brace: write ${env:NAME} or ${file:PATH}"
            issues.append(ValidationIssue.at(document, path, problem))
        if tree is None or not holds_reference(tree):
            return tree
        try:
            text, parts = resolve_parts(tree, environ, folder)
        except UnresolvedError as error:
            issues.append(ValidationIssue.at(document, path, str(error)))
            return tree
        add_secrets(_secret_parts(path, parts))
        return text

    resolved = replaced(document.tree, ())
    _register(document.tree, resolved)
    return resolved, issues


def _secret_parts(path: Path, parts: Sequence[str]) -> list[str]:
    """Return the values of references that are masked also without the text around them.

    A message can quote a part of the text, such as of an expression or a URL.
    """
    if path[-1] in _PLACES:
        return []
    return [value for value in parts if len(value) >= _FEWEST_OF_A_PART]


_URL_PASSWORD = re.compile(r"://[^/@:\s]*:([^/@\s]+)@")
_USER_INFO = ("user-info", "user.info")


def _register(raw: Tree, resolved: Tree) -> None:
    """Register all secrets to be masked: values of references and of keys named like a secret.

    The password in `user:password` is also registered alone, and so are passwords in all URLs.
    """
    before = dict(walk(raw))
    secrets = {
        path: value
        for path, value in walk(resolved)
        if value
        and path[-1] not in _PLACES
        and (value != before[path] or is_secret_name(str(path[-1])))
    }
    add_secrets(secrets.values())
    add_secrets(
        value.partition(":")[2]
        for path, value in secrets.items()
        if str(path[-1]).endswith(_USER_INFO)
    )
    texts = (value for _, value in walk(resolved) if value)
    add_secrets(match[1] for text in texts for match in _URL_PASSWORD.finditer(text))


def plain_secrets(document: Document) -> list[Path]:
    """Return the paths of secrets that a document contains as plain text, not as references.

    A value is a secret if its key has the name of one (`is_secret_name`).
    """
    return [
        path
        for path, text in walk(document.tree)
        if text and is_secret_name(str(path[-1])) and not holds_reference(text)
    ]
