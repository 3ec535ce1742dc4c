"""Parser of `flink run` command lines of Paimon's CDC actions.

A command line is split into words as a POSIX shell does: quotes, backslashes, comments and
continued lines have the shell's meaning. A variable becomes a reference to the environment,
`${env:NAME}`. Command substitutions are refused, and text after the first command is returned.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ingestd.errors import ConfigError

ACTIONS = ("kafka_sync_table", "kafka_sync_database")
_FLAG = "true"
_WITH_VALUE = ("-c", "--class", "-C", "--classpath", "-p", "--parallelism", "-s", "--fromSavepoint")
"""Switches of `flink run` that take a value."""
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_PLACEHOLDER = re.compile(r"<[\w-]+>")
"""A placeholder of examples, such as `<table>`; a shell would read it as redirections."""
_OPERATORS = frozenset(";&|<>()")
_IN_DOUBLE_QUOTES = frozenset('$`"\\')


@dataclass(slots=True)
class ShellLine:
    """The words of the first shell command in a text, and the text after it."""

    words: list[str]
    rest: str = ""


@dataclass(slots=True)
class _Word:
    """A word under construction; `begun` is true once it has a piece, which may be empty quotes."""

    parts: list[str] = field(default_factory=list)
    begun: bool = False

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.begun = True


def shell_words(text: str) -> ShellLine:
    """Split a shell command into words; line breaks count as spaces, as in pasted commands.

    Raises ConfigError for an unterminated quote and for a command substitution.
    """
    return _Splitter(text).split()


class _Splitter:
    """A splitter of one text, which it reads in a single pass."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._word = _Word()
        self._words: list[str] = []

    def split(self) -> ShellLine:
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            placeholder = _PLACEHOLDER.match(text, self._at)
            if placeholder:
                self._word.add(placeholder[0])
                self._at = placeholder.end()
            elif char in _OPERATORS:
                self._end_word()
                return ShellLine(self._words, text[self._at :].strip())
            elif char.isspace():
                self._end_word()
                self._at += 1
            elif char == "#" and not self._word.begun:
                end = text.find("\n", self._at)
                self._at = len(text) if end < 0 else end
            else:
                self._piece(char)
        self._end_word()
        return ShellLine(self._words)

    def _end_word(self) -> None:
        if self._word.begun:
            self._words.append("".join(self._word.parts))
        self._word = _Word()

    def _piece(self, char: str) -> None:
        """Read the next piece of a word: a quoted text, an escape, a variable or one character."""
        if char == "'":
            end = self._closing("'", self._at + 1)
            self._word.add(self._text[self._at + 1 : end])
            self._at = end + 1
        elif char == '"':
            self._word.add("")
            for piece in self._quoted():
                self._word.add(piece)
        elif char == "\\":
            self._escaped()
        else:
            self._word.add(self._plain(char))

    def _closing(self, quote: str, start: int) -> int:
        end = self._text.find(quote, start)
        if end < 0:
            raise self._endless(start)
        return end

    def _endless(self, start: int) -> ConfigError:
        return ConfigError(f"the command line has an unterminated quote {self._shown(start)}")

    def _quoted(self) -> Iterator[str]:
        """Yield the pieces between double quotes."""
        text, start = self._text, self._at + 1
        self._at = start
        while self._at < len(text) and text[self._at] != '"':
            char = text[self._at]
            following = text[self._at + 1 : self._at + 2]
            if char == "\\" and following == "\n":
                self._at += 2
            elif char == "\\" and following in _IN_DOUBLE_QUOTES and following:
                yield following
                self._at += 2
            else:
                yield self._plain(char)
        if self._at >= len(text):
            raise self._endless(start)
        self._at += 1

    def _escaped(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following not in ("\n", ""):
            self._word.add(following)
        self._at += 2

    def _plain(self, char: str) -> str:
        """Read one character, or a variable, which becomes a reference.

        Raises ConfigError for a command substitution.
        """
        if char == "`" or self._text.startswith("$(", self._at):
            raise ConfigError(
                f"the command line runs another command {self._shown(self._at)}; write its output "
                "there"
            )
        variable = _VARIABLE.match(self._text, self._at) if char == "$" else None
        if variable is None:
            self._at += 1
            return char
        self._at = variable.end()
        return f"${{env:{variable[1] or variable[2]}}}"

    def _shown(self, start: int) -> str:
        return f"at {self._text[start : start + 30]!r}"


@dataclass(frozen=True, slots=True)
class FlinkCommand:
    """One action of a command line.

    `arguments` has the values of each argument in order, by name without leading hyphens and with
    underscores. `flink` contains the words before the action: options of Flink itself.
    """

    action: str
    arguments: dict[str, list[str]] = field(default_factory=dict)
    flink: tuple[str, ...] = ()


def parse_flink_command(words: Sequence[str]) -> FlinkCommand:
    """Parse the words of a command; arguments are `--name value`, `--name=value` or `--name`.

    The value of an argument without one is "true". Raises ConfigError if no action reads Kafka, or
    if a word does not belong to an argument.
    """
    names = [word.lower().replace("-", "_") for word in words]
    at = next((n for n, name in enumerate(names) if name in ACTIONS), None)
    if at is None:
        others = [name for name in names if name.endswith(("_sync_table", "_sync_database"))]
        what = f"'{others[0]}' does not read Kafka" if others else "the command line has no action"
        file = "; the command in a file is read by `- < FILE`" if len(words) == 1 else ""
        raise ConfigError(f"{what}; the supported actions are {' and '.join(ACTIONS)}{file}")
    return FlinkCommand(names[at], _arguments(words[at + 1 :]), tuple(words[:at]))


def _arguments(words: Sequence[str]) -> dict[str, list[str]]:
    arguments: dict[str, list[str]] = {}
    at = 0
    while at < len(words):
        word = words[at]
        if not _is_name(word):
            raise ConfigError(f"'{word}' follows no --argument; is a quote missing around it?")
        name, equals, value = word.lstrip("-").partition("=")
        if not equals:
            has_value = at + 1 < len(words) and not _is_name(words[at + 1])
            value = words[at + 1] if has_value else _FLAG
            at += has_value
        arguments.setdefault(name.replace("-", "_"), []).append(value)
        at += 1
    return arguments


def _is_name(word: str) -> bool:
    return word.startswith("-") and word.lstrip("-")[:1].isalpha()


def flink_options(words: Sequence[str]) -> dict[str, str]:
    """Return the options of Flink itself: settings (`-D`) and switches, with their values.

    The value of a switch without one is empty. Words before `run`, and the jar, are left out.
    """
    start = list(words).index("run") + 1 if "run" in words else 0
    options: dict[str, str] = {}
    at = start
    while at < len(words):
        word = words[at]
        at += 1
        if word.startswith("-D"):
            setting = word[2:]
            if not setting and at < len(words):
                setting, at = words[at], at + 1
            name, _, value = setting.partition("=")
            options[name] = value
        elif word in _WITH_VALUE and at < len(words):
            options[word], at = words[at], at + 1
        elif _is_name(word):
            options[word] = ""
    return options
