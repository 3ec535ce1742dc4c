"""Encode strings as JSON, escaped as by Java's JSON writer."""

import re
from collections.abc import Mapping

_ESCAPES: Mapping[str, str] = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r",
}  # fmt: skip
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
ESCAPED_RE2 = r'["\\\x00-\x1f]'
"""Characters to escape, as a regular expression of Arrow."""


def quoted(text: str) -> str:
    """Return a JSON string; control characters without a letter of their own in upper-case hex."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}"
