"""Errors of a configuration, reported together, each with its location."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ingestd.config.allowed_keys import ConfigShape, nearest
from ingestd.config.document import Document, Path, dotted
from ingestd.errors import ConfigError
from ingestd.log import printable, redact

_KEY = "[key]"
_TEXTS: Mapping[str, str] = {
    "missing": "is missing",
    "model_type": "must be a section with keys",
    "mapping_type": "must be a section with keys",
    "dict_type": "must be a section with keys",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
}


@dataclass(frozen=True, slots=True, order=True)
class ValidationIssue:
    """One error of a configuration: a message, and its location.

    A location is `FILE:LINE`, `environment VARIABLE`, or FILE if the line is not known.
    """

    location: str
    message: str

    @classmethod
    def at(cls, document: Document, path: Path, problem: str) -> "ValidationIssue":
        """Return an issue for the node at `path`, with its location.

        The path is prepended to `problem`, unless `problem` already begins with it.
        """
        where = dotted(path)
        named = not where or problem.startswith((f"{where}.", f"{where}:"))
        return cls(document.location_of(path), problem if named else f"{where}: {problem}")

    def __str__(self) -> str:
        return printable(redact(f"{self.location}: {self.message}"))


def validation_errors_of(
    error: ValidationError, document: Document, shape: ConfigShape
) -> list[ValidationIssue]:
    """Convert an error of pydantic to the issues of a configuration, with locations.

    `shape` has the allowed keys; the message about an unknown key proposes the most similar one.
    """
    issues = []
    for detail in error.errors(include_url=False, include_input=False):
        path = tuple(step for step in detail["loc"] if step != _KEY)
        issues.append(ValidationIssue.at(document, path, _problem(detail, path, shape)))
    return issues


def raise_issues(name: str, issues: Iterable[ValidationIssue]) -> None:
    """Raise ConfigError with all issues of the configuration `name`, if there are any."""
    lines = list(dict.fromkeys(str(issue) for issue in issues))
    if not lines:
        return
    count = "one error" if len(lines) == 1 else f"{len(lines)} errors"
    raise ConfigError(f"{name} has {count}:\n" + "\n".join(f"  {line}" for line in lines))


def _problem(error: Mapping[str, Any], path: Path, shape: ConfigShape) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        above = shape.at(path[:-1])
        return f"unknown key{nearest(str(path[-1]), above.keys if above else ())}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_pattern_mismatch":
        letters = "letters" if "A-Z" in context["pattern"] else "lower-case letters"
        return f"a name consists of {letters}, digits, - and _"
    if kind == "literal_error":
        return f"must be {context['expected']}"
    return _TEXTS.get(kind) or _lower(error["msg"])


def _lower(text: Sequence[str] | str) -> str:
    whole = str(text)
    return whole[:1].lower() + whole[1:]
