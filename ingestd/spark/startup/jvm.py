"""The JVM of a local session, started by ourselves and early.

PySpark's launcher starts a shell and a JVM of its own only to compose a command line, and waits for
Spark before it returns. Here the JVM starts while Python still imports, on the archive of classes
if there is one, and PySpark is given its address as to a JVM that runs already. What is not plain
(a cluster, jars, an own Spark installation or its settings) is left to PySpark's launcher.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ingestd.errors import RetryableError
from ingestd.spark.startup.class_archive import archive_file, archive_flags
from ingestd.spark.startup.prefork_start import PreforkServer, open_prefork_server
from ingestd.spark.startup.settings import (
    JVM_OPTIONS,
    PRIVATE_UMASK,
    PYTHON,
    UMASK,
    current_umask,
    worker_path,
)

_MAIN = "org.apache.spark.api.python.PythonGatewayServer"
_ADDRESS = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_LAUNCHER_SETTINGS = (
    "spark.jars",
    "spark.files",
    "spark.archives",
    "spark.submit.",
    "spark.kerberos.",
    "spark.plugins",
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
    "spark.driver.userClassPathFirst",
)
_LAUNCHER_VARIABLES = (
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "SPARK_PREPEND_CLASSES",
    "SPARK_TESTING",
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_GATEWAY_PORT",
)
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
# Those of Spark's launcher, but for a module that its linear algebra alone uses.
_FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
)
_POLL_SECONDS = 0.005
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Gateway:
    """Where PySpark reaches a JVM."""

    port: int
    secret: str


class Jvm:
    """A running JVM that waits for PySpark; it ends with this process or with `stop`."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        command: tuple[str, ...],
        folder: Path,
        prefork_server: PreforkServer | None = None,
    ) -> None:
        self.command = command
        self._prefork_server = prefork_server
        self._process = process
        self._folder = folder

    @property
    def python(self) -> str | None:
        """The command that its Python workers are started with; None for this Python."""
        return (
            None
            if self._prefork_server is None
            else self._prefork_server.variables["PYSPARK_PYTHON"]
        )

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment in which that command finds the prefork server; empty without one."""
        return {} if self._prefork_server is None else self._prefork_server.variables

    def fork_prefork_server(self) -> None:
        """Make the prefork server of this process, which must have no threads yet."""
        if self._prefork_server is not None:
            stdin = self._process.stdin
            self._prefork_server.fork([] if stdin is None else [stdin.fileno()])

    def gateway(self) -> Gateway:
        """Wait until it listens. Raises RetryableError when it ended or stays silent."""
        if self._prefork_server is not None:
            self._prefork_server.spawn()
        end = time.monotonic() + _PATIENCE_SECONDS
        file = self._folder / "address"
        try:
            while not file.exists():
                if self._process.poll() is not None:
                    raise RetryableError(
                        f"Spark's JVM ended with {self._process.returncode} while it started"
                    )
                if time.monotonic() > end:
                    self._process.kill()
                    raise RetryableError(
                        f"Spark's JVM did not answer within {_PATIENCE_SECONDS:.0f} s"
                    )
                time.sleep(_POLL_SECONDS)
            return _read_gateway(file.read_bytes())
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Let it end by itself, and wait until it has."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.wait()
        if self._prefork_server is not None:
            self._prefork_server.close()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self.close()

    def ended_with(self, patience: float) -> int | None:
        """Its exit code, a signal's as a negative one, if it ends within so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(patience)
        return None

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None


def start_jvm(settings: Mapping[str, str]) -> Jvm | None:
    """Start the JVM of a session, without waiting for it; None where PySpark's launcher has to.

    With it starts a prefork server for its Python processes, by `fork_prefork_server` or at the
    latest by `gateway`, unless the user names the Python for them.
    """
    command = jvm_command(settings)
    if command is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="ingestd-jvm-"))
    prefork_server = None if PYTHON in settings else open_prefork_server()
    variables = prefork_server.variables if prefork_server is not None else {}
    try:
        process = subprocess.Popen(  # noqa: S603  (the user's own options)
            command,
            stdin=subprocess.PIPE,  # its end is the end of the JVM
            env={**_environment(settings, folder / "address"), **variables},
            preexec_fn=_ignore_signals,
            umask=PRIVATE_UMASK,
        )
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        if prefork_server is not None:
            prefork_server.close()
        return None
    return Jvm(process, command, folder, prefork_server)


def jvm_command(settings: Mapping[str, str]) -> tuple[str, ...] | None:
    """The command line, on the archive if there is one; None where PySpark's launcher has to."""
    java, home = java_command(), spark_home()
    if java is None or home is None or not _is_plain(settings, home):
        return None
    jars = class_path(home)
    return (
        java,
        "-cp",
        os.pathsep.join(jars),
        f"-Xmx{settings['spark.driver.memory']}",
        *archive_flags(archive_file(java, jars)),
        *settings[JVM_OPTIONS].split(),
        *_FLAGS,
        *(f"--add-opens={place}=ALL-UNNAMED" for place in _OPENED),
        _MAIN,
    )


def java_command() -> str | None:
    """The java of JAVA_HOME, or else of the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / "java") if home else "java")


def spark_home() -> Path | None:
    """The folder of the PySpark package, without importing it."""
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def class_path(home: Path) -> list[str]:
    """Spark's jars in an order that does not depend on the file system."""
    return sorted(str(jar) for jar in (home / "jars").glob("*.jar"))


def own_archive() -> Path | None:
    """The archive that a JVM of ours uses, whether it is there or not."""
    java, home = java_command(), spark_home()
    return None if java is None or home is None else archive_file(java, class_path(home))


def _is_plain(settings: Mapping[str, str], home: Path) -> bool:
    """Whether nothing asks for what only the launcher does."""
    options = settings[JVM_OPTIONS]
    return (
        sys.platform != "win32"
        and settings["spark.master"].split("[")[0] == "local"
        and not any(name in os.environ for name in _LAUNCHER_VARIABLES)
        and not (home / "conf").exists()
        and not any(name.startswith(_LAUNCHER_SETTINGS) for name in settings)
        and not any(mark in options for mark in "\"'\\")
    )


def _environment(settings: Mapping[str, str], address: Path) -> dict[str, str]:
    """Without SPARK_HOME workers import the PySpark that is installed, not an archive's sources."""
    python = settings.get(PYTHON, sys.executable)
    return {
        **os.environ,
        _ADDRESS: str(address),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": worker_path(),
        "SPARK_CONNECT_MODE": "0",
        UMASK: format(current_umask(), "o"),
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
    }


def _ignore_signals() -> None:
    """Signals to a whole group are for the daemon, which ends the JVM when it is done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _read_gateway(document: bytes) -> Gateway:
    port, size = struct.unpack_from("!ii", document)
    return Gateway(port, document[8 : 8 + size].decode())
