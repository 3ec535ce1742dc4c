"""Tasks for executors on other machines, which contain references instead of secrets.

A task contains the settings of brokers, registries and stores. Spark sends tasks over sockets and,
with broadcasts, writes them to disks; both are encrypted only on request. So a value that the
configuration took from `${env:NAME}` or `${file:PATH}` is replaced by its reference, and executors
look it up in their own environment and files.
"""

import io
import os
import pickle
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ingestd.errors import ConfigError
from ingestd.secret_references import UnresolvedError, has_references, reference_of, resolve

Task = TypeVar("Task", bound=Callable[..., Iterator[Any]])


@dataclass(frozen=True, slots=True)
class SealedTask:
    """A pickled task with references instead of secrets, which are resolved when it is called."""

    payload: bytes

    def __call__(self, *arguments: Any) -> Iterator[Any]:  # noqa: ANN401  (those of the task)
        """Resolve the references on this machine, run the task, and yield its results.

        Raises ConfigError for a reference that this machine cannot resolve, and the errors of the
        task.
        """
        yield from self.opened()(*arguments)

    def opened(self) -> Any:  # noqa: ANN401  (any task)
        """Return the task with references replaced by secrets.

        Raises ConfigError if this machine cannot resolve a reference.
        """
        return _Unpickler(io.BytesIO(self.payload)).load()


def seal(task: Task) -> Task | SealedTask:
    """Return a task with references instead of secrets.

    If the configuration of this process contains no references, the task is returned unchanged.
    """
    if not has_references():
        return task
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(task)
    return SealedTask(buffer.getvalue())


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> str | None:  # noqa: ANN401  (every object of the task)
        return reference_of(obj) if type(obj) is str else None


class _Unpickler(pickle.Unpickler):  # noqa: S301  (the driver wrote it)
    def persistent_load(self, pid: str) -> str:
        try:
            return resolve(pid, os.environ, Path())
        except UnresolvedError as error:
            raise ConfigError(
                f"the executor on {platform.node()} cannot look up a secret: {error}; give "
                "executors the variables and files that the configuration refers to"
            ) from error
