"""Structured logging: one event per line as JSON or as text, with secrets masked.

An event is a short constant message; its fields are passed as `extra={"ctx": {...}}`. Control
characters in fields are escaped, so that no field can start a new line or control the terminal.

Lines are repeats of each other if they have the same logger, level, event, table and other
identifying fields. Of repeated warnings and errors, one line is written per window, then a line
with the number of repeats when the window ends or the handler is closed, as it is when the process
exits; only a killed process loses counts.
"""

import copy
import json
import logging
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TextIO

from ingestd.wording import utc_text

_WINDOW_SECONDS = 60.0
_REPEATED = "repeated"
_WITHIN = "within_seconds"
_IDENTIFYING = ("table", "source", "topic", "partition", "offset", "stage", "reason", "error_type")
"""Fields that identify a line: lines with different values are not repeats of each other."""
_MOST_KINDS = 1_000

ANSWER: Mapping[str, object] = {"is_answer": True}
"""Part of `extra` of lines that answer a request, such as a signal: they are always written."""

Fields = Callable[[logging.LogRecord], Mapping[str, object]]


@dataclass(slots=True)
class _Repeats:
    """The repeats of a line that was written at the time `begun`: their number, and the newest."""

    begun: float
    count: int = 0
    newest: logging.LogRecord | None = None


class SummingHandler(logging.StreamHandler[TextIO]):
    """A stream handler that writes only the first of repeated warnings and errors in each window.

    A window has `window` seconds. `fields` is a function that returns all fields of a line,
    including the fields of its thread. Lines below WARNING and above ERROR are always written, and
    so are lines with `ANSWER`, and all lines while the level is DEBUG.
    """

    def __init__(
        self,
        stream: TextIO,
        fields: Fields,
        *,
        window: float = _WINDOW_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(stream)
        self._fields = fields
        self._window = window
        self._clock = clock
        self._kinds: dict[Hashable, _Repeats] = {}
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write the counts of ended windows; then write the line, or count it as a repeat."""
        now = self._clock()
        self._sum_up(now)
        summed = logging.WARNING <= record.levelno <= logging.ERROR and not _is_answer(record)
        if not summed or self._writes_all():
            super().emit(record)
            return
        fields = dict(self._fields(record))
        kind = _kind(record, fields)
        repeats = self._kinds.get(kind)
        if repeats is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._sum_up(None)
            self._kinds[kind] = _Repeats(now)
            super().emit(record)
            return
        repeats.count += 1
        repeats.newest = _kept(record, fields)
        self._wake_later()

    def close(self) -> None:
        """Write all counts; also called when the process exits."""
        with self._held():
            if not self.stream.closed:
                self._sum_up(None)
            self._kinds.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        super().close()

    def write_due(self) -> None:
        """Write the counts of windows that have ended, even if nothing else is logged."""
        with self._held():
            self._timer = None
            self._sum_up(self._clock())
            if any(repeats.count for repeats in self._kinds.values()):
                self._wake_later()

    def _held(self) -> threading.RLock:
        """Return the lock of the handler."""
        if self.lock is None:
            raise ValueError("a handler without a lock")
        return self.lock

    def _writes_all(self) -> bool:
        return logging.getLogger().level <= logging.DEBUG

    def _sum_up(self, now: float | None) -> None:
        """Write the counts of windows that have ended; with None, of all windows."""
        for kind, repeats in list(self._kinds.items()):
            if now is not None and now - repeats.begun < self._window:
                continue
            del self._kinds[kind]
            if repeats.newest is not None:
                super().emit(_sum_of(repeats, repeats.newest, self._clock()))

    def _wake_later(self) -> None:
        if self._timer is not None:
            return
        timer = threading.Timer(self._window, self.write_due)
        timer.daemon = True
        with suppress(RuntimeError):  # no thread available: the next line or `close` writes counts
            timer.start()
            self._timer = timer


def _is_answer(record: logging.LogRecord) -> bool:
    return bool(getattr(record, "is_answer", False))


def _kind(record: logging.LogRecord, fields: Mapping[str, object]) -> Hashable:
    """Return a key that is equal for lines that are repeats of each other.

    Python's own warnings are compared by their text.
    """
    text = record.getMessage() if record.name == "py.warnings" else str(record.msg)
    error = record.exc_info[0] if record.exc_info else None
    identity = tuple(str(fields.get(name)) for name in _IDENTIFYING)
    return record.name, record.levelno, text, error, identity


def _kept(record: logging.LogRecord, fields: dict[str, object]) -> logging.LogRecord:
    """Return a copy of a line that any thread can write later.

    Of an exception, only the message remains, as a field.
    """
    kept = copy.copy(record)
    if record.exc_info and record.exc_info[1]:
        fields.setdefault("message", str(record.exc_info[1]))
    kept.exc_info = kept.exc_text = None
    kept.__dict__["ctx"] = fields
    return kept


def _sum_of(repeats: _Repeats, newest: logging.LogRecord, now: float) -> logging.LogRecord:
    """Return the newest repeat with the number of repeats and the elapsed seconds as fields."""
    counts = {_REPEATED: repeats.count, _WITHIN: max(round(now - repeats.begun), 1)}
    newest.__dict__["ctx"] = {**counts, **newest.__dict__["ctx"]}
    return newest


LogFormat = Literal["auto", "json", "text"]

MASK = "******"
_FEWEST_CHARACTERS = 4
"""Shorter secrets are not masked in lines, because they occur in ordinary words."""
_NOT_A_SECRET = frozenset(
    {"true", "false", "null", "none", "localhost", "json", "text", "ingestd", "kafka", "fail"}
)
_SECRET_NAME = re.compile(
    r"passw|secret|token(?!\.endpoint|\.provider|\.enabled|-path|-loader|-file|-ecs)"
    r"|credential(?!s[-_.]source)|private|jaas|api[-_.]?key|access[-_.]?key|ssl\.key\.pem"
    r"|oauthbearer\.config|user[-_.]?info|header\.authorization",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_ESCAPE = r"\\{1,4}"
"""The backslashes of an escape in text that is quoted once or repeatedly."""
_SHORT = {"\n": (r"\\+n",), "\t": (r"\\+t",), "\r": (r"\\+r",), " ": (r"\+",), "'": ("''",)}
"""Characters with an escape that is not hexadecimal."""
_PLAIN = re.compile(r"[^\s\"=]+")
# At lower levels botocore logs signatures.
_NOISY = {"botocore": logging.WARNING, "py4j": logging.CRITICAL, "urllib3": logging.WARNING}

_process_fields: dict[str, object] = {}
_secrets: dict[str, re.Pattern[str]] = {}
_bound: ContextVar[Mapping[str, object]] = ContextVar("ingestd_log_fields")


def configure_logging(
    level: str, style: LogFormat, *, stream: TextIO | None = None, **fields: object
) -> None:
    """Write all log events of the process to one stream, by default standard error.

    `auto` writes text to a terminal and JSON elsewhere. `fields` are added to every line. Of
    repeated warnings and errors, only the first is written, and the others are counted. The
    handlers of the root logger, and the fields of an earlier call, are replaced.
    """
    target = stream or sys.stderr
    handler = SummingHandler(target, event_fields)
    as_text = style == "text" or (style == "auto" and target.isatty())
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    root = logging.getLogger()
    replaced, root.handlers[:] = root.handlers[:], [handler]
    for previous in replaced:
        if isinstance(previous, SummingHandler):
            previous.close()
    root.setLevel(level.upper())
    for name, least in _NOISY.items():
        logging.getLogger(name).setLevel(max(least, root.level))
    logging.captureWarnings(capture=True)
    _process_fields.clear()
    _process_fields.update(fields)


@contextmanager
def bind(**fields: object) -> Iterator[None]:
    """Add fields to every line that this thread logs inside the block.

    A bound field of the same name has its earlier value again after the block.
    """
    token = _bound.set({**_bound.get({}), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def bind_thread(**fields: object) -> None:
    """Add fields to every line that this thread logs from now on; None removes a field."""
    merged = {**_bound.get({}), **fields}
    _bound.set({name: value for name, value in merged.items() if value is not None})


def add_secrets(values: Iterable[str]) -> None:
    """Mask these values in everything that is logged or redacted from now on.

    Values of fewer than four characters and common words, such as `true` or `kafka`, are not
    masked.
    """
    for value in values:
        if len(value) >= _FEWEST_CHARACTERS and value.lower() not in _NOT_A_SECRET:
            _secrets[value] = _pattern(value)


def _pattern(secret: str) -> re.Pattern[str]:
    """Return a pattern that matches a secret both plain and escaped, once or repeatedly.

    The escapes are those of JSON, YAML and URLs.
    """
    return re.compile("".join(map(_forms, secret)))


def _forms(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    code, raw = ord(character), character.encode("utf-8", "surrogatepass")
    units = character.encode("utf-16-be", "surrogatepass").hex()
    hexadecimal = (
        "".join(f"%{byte:02x}" for byte in raw),
        "".join(rf"{_ESCAPE}x{byte:02x}" for byte in raw),
        "".join(rf"{_ESCAPE}u{units[at : at + 4]}" for at in range(0, len(units), 4)),
        rf"{_ESCAPE}x{code:02x}",
        rf"{_ESCAPE}U{code:08x}",
    )
    plain = _ESCAPE if character == "\\" else rf"(?:{_ESCAPE})?{re.escape(character)}"
    forms = [plain, f"(?i:{'|'.join(hexadecimal)})", *_SHORT.get(character, ())]
    return f"(?:{'|'.join(forms)})"


def is_secret_name(name: str) -> bool:
    """Return whether the value of a setting of this name is a secret.

    A name of a secret contains a word such as `password`, `secret` or `token`, in any case.
    """
    return _SECRET_NAME.search(name) is not None


def redact(text: str) -> str:
    """Return the text with the values given to `add_secrets` masked."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = _secrets[secret].sub(MASK, text)
    return text


def printable(text: str) -> str:
    """Return the text with control characters escaped, so that it stays on one line."""
    return _CONTROL.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """Return the text with control characters escaped, except newlines and tabs."""
    return _COMMANDS.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def event_fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields of process, thread and event; the values of secret settings are masked."""
    context = getattr(record, "ctx", None)
    fields = {**_process_fields, **_bound.get({}), **(context or {})}
    return {name: MASK if is_secret_name(name) else value for name, value in fields.items()}


class JsonFormatter(logging.Formatter):
    """A formatter that writes each event as one line: a JSON object in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Return an event as text, without a line end."""
        document: dict[str, object] = {
            "ts": utc_text(record.created, "milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in event_fields(record).items():
            document[f"ctx_{name}" if name in document else name] = value
        if record.exc_info and record.exc_info[1]:
            document["error"] = _error(record.exc_info[1])
        return json.dumps(_redacted(document), default=str, separators=(",", ":"))


class TextFormatter(logging.Formatter):
    """A formatter that writes each event as one line of text: time, level, event and fields.

    A stack trace follows on indented lines.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return an event as text, without a line end."""
        values = event_fields(record).items()
        fields = "".join(f" {name}={_word(redact(str(value)))}" for name, value in values)
        time = utc_text(record.created, "milliseconds")[11:23]
        head = f"{time} {record.levelname:<7} {record.getMessage()}{fields}"
        line = printable(redact(head))
        if record.exc_info and record.exc_info[1]:
            stack = "".join(traceback.format_exception(record.exc_info[1]))
            lines = (printable(stack_line) for stack_line in redact(stack).splitlines())
            line = "\n    ".join([line, *lines])
        return line


def _error(error: BaseException) -> dict[str, str]:
    stack = "".join(traceback.format_exception(error))
    return {"type": type(error).__name__, "message": str(error), "stack": stack}


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _redacted(value: object) -> object:
    """Return a value with secrets masked in every string in it, including names of fields."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(str(name)): _redacted(element) for name, element in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(element) for element in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact(str(value))
