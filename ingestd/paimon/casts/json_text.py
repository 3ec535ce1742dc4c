"""Encode strings as JSON, escaped as by Java's JSON writer."""

import re
from collections.abc import Mapping

_ESCAPES: Mapping[str, str] = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r",
}  # fmt: skip
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
ESCAPED_RE2 = r'["\\\x00-\x1f]'
"""A regular expression (RE2) of the characters to escape."""


def quoted(text: str) -> str:
    """Return text as a JSON string in quotes.

    Control characters without a short escape are escaped in upper-case hexadecimal.
    """
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}"
