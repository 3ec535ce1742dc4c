"""Findings of the verification of a table."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ingestd.errors import FormatError, StorageError, UnsupportedError

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a table that verification has found.

    `code` is the kind of the problem, such as `file-size`; `where` is the file or snapshot that has
    the problem.
    """

    severity: Severity
    code: str
    where: str
    message: str


@dataclass(slots=True)
class VerifyFindings:
    """The findings of one verification, in the order of their discovery, each only once.

    The arguments of the methods are the fields of `Finding`.
    """

    found: dict[Finding, None] = field(default_factory=dict)

    def error(self, code: str, where: str, message: str) -> None:
        """Record an error: the table is damaged."""
        self.found.setdefault(Finding("error", code, where, message))

    def warning(self, code: str, where: str, message: str) -> None:
        """Record a warning: the table is unusual, but not damaged."""
        self.found.setdefault(Finding("warning", code, where, message))

    @contextlib.contextmanager
    def reading(self, where: str, code: str = "unreadable") -> Iterator[None]:
        """Record an error if the block cannot read the file `where`, and suppress the exception.

        Suppressed are FormatError, StorageError, UnsupportedError and FileNotFoundError; the code
        of a FileNotFoundError is `missing-file` instead of `code`.
        """
        try:
            yield
        except (FormatError, StorageError, UnsupportedError) as error:
            self.error(code, where, error.message)
        except FileNotFoundError as error:
            self.error("missing-file", where, f"{error.filename or error} does not exist")
