"""The archive of Spark's classes for the JVM (application class-data sharing, AppCDS).

Loading and verifying classes takes half of the JVM's start time. An archive is valid for one Java
installation and one set of jars, and its name is a digest of both. `ingestd.spark.startup.training`
creates it once. Without an archive, or with one that the JVM rejects, the start only takes longer.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

FOLDER = "INGESTD_CLASS_ARCHIVE"
OFF = "off"
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
# Mapped at its original address, an archive is shared memory; elsewhere it is copied and rewritten.
_IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
_STALE_SECONDS = 1800.0
_OLD_SECONDS = 30 * 86_400.0
_LAYOUT = b"1\n"


def archive_folder() -> Path | None:
    """Return the folder of the JVM's class archives (class data sharing).

    It is INGESTD_CLASS_ARCHIVE, or a folder in the user's cache. Returns None if the variable is
    `off`, or if the user has no home folder.
    """
    folder = os.environ.get(FOLDER, "")
    if folder.lower() == OFF:
        return None
    if folder:
        return Path(folder)
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(cache) if cache else Path.home() / ".cache") / "ingestd" / "spark"
    except RuntimeError:  # the user has no home
        return None


def archive_file(java: str, jars: Sequence[str]) -> Path | None:
    """Return the path of the class archive for a `java` program and jars, whether it exists or not.

    Returns None if INGESTD_CLASS_ARCHIVE is `off`, or if the user has no home folder.
    """
    folder = archive_folder()
    if folder is None:
        return None
    program = Path(java).resolve()
    digest = hashlib.sha256(_LAYOUT)
    for path in (program, program.parent.parent / "lib" / "server" / "libjvm.so", *map(Path, jars)):
        digest.update(_identity(path).encode())
    return folder / f"{digest.hexdigest()[:24]}.jsa"


def archive_flags(file: Path | None) -> tuple[str, ...]:
    """Return the JVM flags that use a class archive; () if `file` is None or does not exist."""
    if file is None or not file.is_file():
        return ()
    return ("-Xshare:auto", f"-XX:SharedArchiveFile={file}", *_IN_PLACE, *_QUIET)


def recording_flags(file: Path) -> tuple[str, ...]:
    """Return the JVM flags with which a JVM writes a class archive when it exits."""
    return (f"-XX:ArchiveClassesAtExit={file}", *_QUIET)


def create_in_background(file: Path | None, module: str) -> bool:
    """Start a process that creates an archive, unless the file exists or is being created.

    The process runs the Python module `module` with the lowest priority and outlives this process.
    Returns whether it was started. With `file` None, nothing is started.
    """
    if file is None or file.exists() or not _create_marker(file):
        return False
    try:
        subprocess.Popen(  # noqa: S603  (no external input)
            [sys.executable, "-m", module],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_lowest_priority,
        )
    except OSError:
        return False
    return True


def temporary_archive(file: Path) -> Path:
    """Return an unused path in the folder of `file`, for an archive that is being written.

    Creates the folder if it is missing.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix="making-", suffix=".jsa")
    os.close(handle)
    Path(name).unlink()
    return Path(name)


def publish(recorded: Path, file: Path) -> bool:
    """Rename the finished class archive `recorded` to `file`, and remove archives of over 30 days.

    Returns False, and removes none, if `recorded` was not written. In both cases, another process
    may create the archive from then on.
    """
    _marker(file).unlink(missing_ok=True)
    if not recorded.is_file():
        return False
    recorded.replace(file)
    for other in file.parent.glob("*.jsa"):
        if time.time() - other.stat().st_mtime > _OLD_SECONDS:
            other.unlink(missing_ok=True)
    return True


def _create_marker(file: Path) -> bool:
    """Create the marker that reserves an archive for one process that creates it.

    Returns False if another process has reserved the archive, or if the marker cannot be created. A
    marker older than half an hour is replaced.
    """
    marker = _marker(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if marker.exists() and time.time() - marker.stat().st_mtime > _STALE_SECONDS:
            marker.unlink(missing_ok=True)
        marker.touch(exist_ok=False)
    except OSError:
        return False
    return True


def _marker(file: Path) -> Path:
    return file.with_suffix(".making")


def _identity(path: Path) -> str:
    """Return a line with path, size and modification time of a file, which a JVM compares, too.

    For a missing file, the line has only the path.
    """
    try:
        status = path.stat()
    except OSError:
        return f"{path}\n"
    # Whole seconds: image layers store no fractions, and the JVM ignores them.
    return f"{path} {status.st_size} {int(status.st_mtime)}\n"


def _lowest_priority() -> None:
    os.nice(19)
