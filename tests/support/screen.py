"""What a terminal shows of the bytes that a program wrote: lines, styles, and lines it took back.

As much of a terminal as command lines use: styles, moves of the cursor up and to the margin, erased
lines, wrapping at the last column. Anything else is an error, so that nothing is passed over.
"""

import re
from dataclasses import dataclass, field

STYLES = {
    "1": "bold", "2": "dim", "3": "italic", "4": "underline", "7": "reverse",
    "30": "black", "31": "red", "32": "green", "33": "yellow", "34": "blue", "35": "magenta",
    "36": "cyan", "37": "white", "90": "grey", "91": "bright red", "92": "bright green",
    "40": "on black", "41": "on red", "42": "on green", "43": "on yellow", "44": "on blue",
    "93": "bright yellow", "94": "bright blue", "95": "bright magenta", "96": "bright cyan",
}  # fmt: skip
"""Names of the codes that start a style."""
COLOURS = frozenset(name for code, name in STYLES.items() if int(code) >= 30)
LETTERS = frozenset(name for name in COLOURS if not name.startswith("on "))
_TOKEN = re.compile(
    r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b(.)|([\x00-\x1f])|([^\x00-\x1f\x1b]+)", re.DOTALL
)
_CURSOR = {"?25l", "?25h", "?2026h", "?2026l"}
Style = tuple[str, ...]
Cell = tuple[str, Style]


@dataclass
class Screen:
    """Lines of cells without an end: what scrolled away is kept."""

    columns: int
    lines: list[list[Cell]] = field(default_factory=lambda: [[]])
    taken_back: list[str] = field(default_factory=list)
    row: int = 0
    column: int = 0
    style: Style = ()

    def feed(self, text: str) -> None:
        """Take what a program wrote; an unknown control sequence is a ValueError."""
        end = 0
        for token in _TOKEN.finditer(text):
            codes, final, other, control, words = token.groups()
            end = token.end()
            if words:
                self._write(words)
            elif control:
                self._control(control)
            elif other:
                raise ValueError(f"a terminal would do something with ESC {other!r}")
            else:
                self._sequence(codes, final)
        if end != len(text):
            raise ValueError(f"a sequence without an end: {text[end:]!r}")

    def plain(self) -> str:
        """The lines as text, without the blanks at their ends."""
        texts = ["".join(char for char, _ in line).rstrip() for line in self.lines]
        return "\n".join(texts).rstrip("\n")

    def marked(self) -> str:
        """The lines with their styles as readable marks: `[bold red]error:[/]`."""
        return "\n".join(_marked(line) for line in self.lines).rstrip("\n")

    def colours(self) -> set[str]:
        """Every colour that is on the screen."""
        return {name for line in self.lines for _, style in line for name in style} & COLOURS

    def _write(self, words: str) -> None:
        for char in words:
            if self.column == self.columns:
                self._line_feed()
                self.column = 0
            line = self.lines[self.row]
            line.extend([(" ", ())] * (self.column + 1 - len(line)))
            line[self.column] = (char, self.style)
            self.column += 1

    def _control(self, control: str) -> None:
        if control == "\r":
            self.column = 0
        elif control == "\n":
            self._line_feed()
        else:
            raise ValueError(f"a terminal would do something with {control!r}")

    def _line_feed(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def _sequence(self, codes: str, final: str) -> None:
        if final == "m":
            self._restyle(codes)
        elif final == "A":
            self.row = max(0, self.row - int(codes or 1))
        elif final == "K" and codes == "2":
            gone = "".join(char for char, _ in self.lines[self.row]).rstrip()
            self.taken_back += [gone] if gone else []
            self.lines[self.row] = []
        elif codes + final not in _CURSOR:
            raise ValueError(f"a terminal would do something with ESC [{codes}{final}")

    def _restyle(self, codes: str) -> None:
        for code in (codes or "0").split(";"):
            if code == "0":
                self.style = ()
            elif code in ("39", "49"):  # letters, or their ground, as they are by themselves
                gone = LETTERS if code == "39" else COLOURS - LETTERS
                self.style = tuple(one for one in self.style if one not in gone)
            elif code in STYLES:
                self.style = (*self.style, STYLES[code])
            else:
                raise ValueError(f"no name for the style {code} of ESC [{codes}m")


def _marked(line: list[Cell]) -> str:
    cells = line[:]
    while cells and cells[-1][0] == " ":
        cells.pop()
    text = ""
    before: Style = ()
    for char, style in cells:
        if style != before:
            text += ("[/]" if before else "") + (f"[{' '.join(style)}]" if style else "")
            before = style
        text += char
    return text + ("[/]" if before else "")
