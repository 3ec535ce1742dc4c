"""References to secrets, `${env:NAME}` and `${file:PATH}`, and their values in this process.

The configuration is loaded with their values. Tasks on other machines get the references instead,
and look the values up where they run (`ingestd.spark.sealed_task`).
"""

import re
from collections.abc import Mapping
from pathlib import Path

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_UNCLOSED = re.compile(r"\$\{(?:env|file):[^}]*$")
_MAX_BYTES = 64 << 10
_known: dict[str, str] = {}
"""Texts with references, their paths absolute, by the texts that they were resolved to."""


class UnresolvedError(Exception):
    """A reference, such as `${env:NAME}`, cannot be resolved on this machine.

    The message does not contain the value.
    """


def holds_reference(text: str | None) -> bool:
    """Return whether a text contains a reference, `${env:NAME}` or `${file:PATH}`.

    Returns False for None.
    """
    return text is not None and _REFERENCE.search(text) is not None


def is_unclosed(text: str) -> bool:
    """Return whether a text ends in a reference without its closing brace."""
    return _UNCLOSED.search(text) is not None


def resolve(text: str, environ: Mapping[str, str], folder: Path) -> str:
    """Return a text with its references `${env:NAME}` and `${file:PATH}` replaced by their values.

    `environ` has the variables; a relative path starts from `folder`. Raises UnresolvedError if a
    reference is invalid, or its variable or file cannot be read.
    """
    return resolve_parts(text, environ, folder)[0]


def resolve_parts(text: str, environ: Mapping[str, str], folder: Path) -> tuple[str, list[str]]:
    """Return a text with its references replaced by their values, and these values in order.

    References are `${env:NAME}` and `${file:PATH}`. The original text is remembered for
    `reference_of`. A relative path starts from `folder`. Line breaks at the end of a file are
    removed. Raises UnresolvedError if a reference is invalid, or its variable or file cannot be
    read.
    """
    values = [_look_up(match[1], environ, folder) for match in _REFERENCE.finditer(text)]
    following = iter(values)
    resolved = _REFERENCE.sub(lambda _: next(following), text)
    if resolved:
        _known[resolved] = _REFERENCE.sub(lambda match: _absolute(match[1], folder), text)
    return resolved, values


def reference_of(resolved: str) -> str | None:
    """Return the text with references from which `resolve` returned the text `resolved`, or None.

    Paths in its references are absolute.
    """
    return _known.get(resolved)


def has_references() -> bool:
    """Return whether this process has resolved a text that contains references to secrets."""
    return bool(_known)


def _absolute(reference: str, folder: Path) -> str:
    kind, colon, name = reference.partition(":")
    return f"${{{kind}{colon}{folder / name if kind == 'file' else name}}}"


def _look_up(reference: str, environ: Mapping[str, str], folder: Path) -> str:
    kind, colon, name = reference.partition(":")
    if kind == "env" and name:
        if name not in environ:
            raise UnresolvedError(f"environment variable {name} is not set")
        return environ[name]
    if kind == "file" and name:
        return _read(folder / name)
    raise UnresolvedError(f"'${{{kind}{colon}...}}' is neither ${{env:NAME}} nor ${{file:PATH}}")


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UnresolvedError(f"{path} is larger than {_MAX_BYTES} bytes")
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UnresolvedError(f"{path} cannot be read: {type(error).__name__}") from error
