"""Secrets that are easy to find, planted into configurations, and the search for them."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

MARK = "planted"


class Planted:
    """Secrets by where they were put; each holds the mark and is like no other text."""

    def __init__(self) -> None:
        self.by_place: dict[str, str] = {}

    def secret(self, place: str) -> str:
        """A new secret for a place."""
        value = f"{MARK}-{len(self.by_place)}-{place}-aB3$x"
        self.by_place[place] = value
        return value

    def file(self, folder: Path, place: str) -> str:
        """A reference to a new file with a new secret."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / place
        path.write_text(self.secret(place) + "\n")
        return f"${{file:{path}}}"

    def found_in(self, content: str | bytes) -> list[str]:
        """The places whose secrets are in a text, as they are or in base64, in whole or in part."""
        data = content.encode() if isinstance(content, str) else content
        return [
            place
            for place, value in self.by_place.items()
            if any(form in data for form in _forms(value))
        ]

    def search(self, contents: Iterable[tuple[str, str | bytes]]) -> Mapping[str, list[str]]:
        """Which secrets are in which of some named contents."""
        searched = {name: self.found_in(content) for name, content in contents}
        return {name: places for name, places in searched.items() if places}


def _forms(value: str) -> Iterator[bytes]:
    data = value.encode()
    yield data
    yield data.decode().encode("utf-16-le")
    for shift in range(3):
        # Wherever it begins in a longer text, the middle of its base64 is one of three.
        yield base64.b64encode(b"\0" * shift + data)[4:-4]


def files_below(folder: Path, *, leaving_out: Iterable[Path] = ()) -> Iterator[tuple[str, bytes]]:
    """Path and content of every regular file; those that vanish meanwhile are passed over."""
    left = set(leaving_out)
    for path in sorted(folder.rglob("*")):
        if path in left or left & set(path.parents):
            continue
        try:
            if path.is_file() and not path.is_symlink():
                yield str(path), path.read_bytes()
        except OSError:
            continue


def processes(pids: Iterable[int]) -> Iterator[tuple[str, bytes]]:
    """Command line and environment of processes, as everybody of the same user sees them."""
    for pid in pids:
        for name in ("cmdline", "environ"):
            try:
                yield f"{pid}/{name}", Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                continue
