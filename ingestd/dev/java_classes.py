"""Compile Java sources once, with a compiler that requires only a Java runtime."""

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ingestd.dev.jars import JarError, cache_folder, fetch, java_command

_COMPILER = "org.eclipse.jdt:ecj:3.38.0"
_COMPILER_DIGEST = "97c566b120009c203a2fc8b291f4a9adbc171cf1ccb70f06f6b4e1828c00ce8e"
_OPTIONS = ("-17", "-nowarn", "-proc:none", "-d")


def compiled(sources: Sequence[Path], classpath: Sequence[Path], folder: Path) -> Path:
    """Compile Java sources, unless this was done before, and return the folder of the classes.

    The classes are cached in a subfolder of `folder`, whose name is derived from the contents of
    the sources and the names of the archives in `classpath`. Several processes may call this at
    once. Raises JarError, with the compiler's output, for invalid sources or if the compiler cannot
    be downloaded, and ConfigError without Java.
    """
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources))
    digest.update(":".join(jar.name for jar in classpath).encode())
    target = folder / digest.hexdigest()[:16]
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        fresh = Path(scratch) / "classes"
        _compile(sources, classpath, fresh)
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():  # another process may have been first
                raise
    return target


def _compile(sources: Sequence[Path], classpath: Sequence[Path], target: Path) -> None:
    pins = {_COMPILER: _COMPILER_DIGEST}
    compiler = fetch([_COMPILER], cache_folder() / "compiler", pins=pins)[0]
    command = [java_command(), "-jar", str(compiler), *_OPTIONS, str(target)]
    command += ["-cp", ":".join(map(str, classpath)), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise JarError(f"the Java sources do not compile\n{(done.stdout + done.stderr).strip()}")
