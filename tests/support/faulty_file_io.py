"""A FileIO that keeps a diary and fails where a test tells it to."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import FileIO
from tests.support.watched_file_io import WatchedFileIO

When = Literal["before", "after"]


@dataclass
class ValidationIssue:
    """Fails the calls `first` to `first + times - 1` of one operation on matching paths.

    `before`: nothing happened; `after`: it happened and the answer got lost.
    `action` runs in place of the failure, to let a rival act at that very point.
    """

    operation: str
    path_part: str = ""
    when: When = "before"
    first: int = 1
    times: int = 1
    action: Callable[[], None] | None = None
    seen: int = 0

    def matches(self, operation: str, path: str) -> bool:
        """Counts a call and tells whether it is one to fail."""
        if operation != self.operation or self.path_part not in path:
            return False
        self.seen += 1
        return self.first <= self.seen < self.first + self.times

    def strike(self, path: str) -> None:
        """Run the action, or fail."""
        if self.action is not None:
            self.action()
        else:
            raise StorageError(f"injected: {self.operation} {path} ({self.when})")


@dataclass
class FaultyFileIO(WatchedFileIO):
    """Wraps a FileIO; `calls` lists (operation, path) in order."""

    inner: FileIO
    issues: list[ValidationIssue] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def operations(self, operation: str, path_part: str = "") -> list[str]:
        """Paths of the recorded calls of one operation."""
        return [path for name, path in self.calls if name == operation and path_part in path]

    @contextlib.contextmanager
    def _call(self, operation: str, path: str) -> Iterator[None]:
        self.calls.append((operation, path))
        due = [issue for issue in self.issues if issue.matches(operation, path)]
        for issue in due:
            if issue.when == "before":
                issue.strike(path)
        yield
        for issue in due:
            if issue.when == "after":
                issue.strike(path)
