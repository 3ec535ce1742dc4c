"""Start and keep the JVM of a local session.

PySpark's launcher starts a shell and another JVM to compose a command line, and waits for Spark
before it returns. This module starts the JVM directly while Python still imports (`prestart`), with
the class archive if one exists, and `startup.session` connects PySpark to it. A prestarted JVM
whose settings differ from the session's is killed and not used. PySpark's launcher is used for
clusters, for additional jars, for another Spark installation or its configuration files, and if
INGESTD_SPARK_INTERNALS is `off`.
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
import threading
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
    session_settings,
    uses_internals,
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
# The flags of Spark's launcher, without a module that only its linear algebra uses.
_FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
)
_POLL_SECONDS = 0.005
_START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Gateway:
    """The port and the secret of a JVM's py4j gateway."""

    port: int
    secret: str


class Jvm:
    """A running JVM that waits for PySpark, until this process ends or it is closed or killed.

    `command` is its command line. In `folder` the JVM writes the address of its gateway; the folder
    is removed when the address is read, or by `close`. `prefork_server` forks the Python processes
    of the JVM (None: Spark starts them).
    """

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
        """The command that requests Python processes from the prefork server; None without one."""
        return (
            None
            if self._prefork_server is None
            else self._prefork_server.variables["PYSPARK_PYTHON"]
        )

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables that `python` needs; empty without a prefork server."""
        return {} if self._prefork_server is None else self._prefork_server.variables

    def fork_prefork_server(self) -> None:
        """Fork the JVM's prefork server, if it has one; this process must not have threads."""
        if self._prefork_server is not None:
            stdin = self._process.stdin
            self._prefork_server.fork([] if stdin is None else [stdin.fileno()])

    def gateway(self) -> Gateway:
        """Wait until the gateway listens, and return its address.

        Starts the prefork server if it was not forked. Raises RetryableError if the JVM ends, or if
        it does not respond within two minutes, after which it is killed.
        """
        if self._prefork_server is not None:
            self._prefork_server.spawn()
        end = time.monotonic() + _START_SECONDS
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
                        f"Spark's JVM did not respond within {_START_SECONDS:.0f} s"
                    )
                time.sleep(_POLL_SECONDS)
            return _read_gateway(file.read_bytes())
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Ask the JVM to exit, wait until it has, and stop its prefork server."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.wait()
        if self._prefork_server is not None:
            self._prefork_server.close()

    def kill(self) -> None:
        """Kill the JVM, wait for its exit, and stop its prefork server."""
        self._process.kill()
        self.close()

    def wait(self, seconds: float) -> int | None:
        """Wait up to `seconds` for the exit; return the exit code, or None if the JVM still runs.

        Code -N means that signal N ended the JVM.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    @property
    def running(self) -> bool:
        """Whether the JVM is running."""
        return self._process.poll() is None


_lock = threading.Lock()
_prestarted: list[Jvm] = []
_kept: list[Jvm] = []


def start_jvm(settings: Mapping[str, str]) -> Jvm | None:
    """Start the JVM of a session without waiting for it; None if PySpark's launcher is needed.

    Its prefork server is forked by `Jvm.fork_prefork_server`, or else started by `Jvm.gateway`. The
    JVM has no prefork server if the user sets the Python of the workers, or if the server's socket
    cannot be opened. Returns None also if the JVM cannot be executed.
    """
    command = jvm_command(settings)
    if command is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="ingestd-jvm-"))
    prefork_server = None if PYTHON in settings else open_prefork_server()
    variables = prefork_server.variables if prefork_server is not None else {}
    try:
        process = subprocess.Popen(  # noqa: S603  (options of the user)
            command,
            stdin=subprocess.PIPE,  # the JVM exits when it is closed
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
    """Return the command line of the JVM; None if PySpark's launcher is needed.

    Returns None also without Java or PySpark.
    """
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
        *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
        _MAIN,
    )


def java_command() -> str | None:
    """Return the path of java in JAVA_HOME, or on the PATH if JAVA_HOME is not set.

    Returns None if java is not found there.
    """
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / "java") if home else "java")


def spark_home() -> Path | None:
    """Return the folder of the PySpark package, without importing it; None without PySpark."""
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def class_path(home: Path) -> list[str]:
    """Return the paths of Spark's jars in an order that does not depend on the file system."""
    return sorted(str(jar) for jar in (home / "jars").glob("*.jar"))


def class_archive_path() -> Path | None:
    """Return the path of the class archive of ingestd's JVMs, which need not exist.

    Returns None without Java or PySpark, if INGESTD_CLASS_ARCHIVE is `off`, or if the user has no
    home folder.
    """
    java, home = java_command(), spark_home()
    return None if java is None or home is None else archive_file(java, class_path(home))


def prestart(extra: Mapping[str, str]) -> None:
    """Start the JVM for a session with the user's settings `extra`, without waiting for it.

    Does nothing if this process has started a JVM already, or if PySpark's launcher is needed.
    Raises ConfigError for a port for exchange files that is not a number below 65536.
    """
    settings = session_settings(extra)
    with _lock:
        if not _prestarted and not _kept:
            jvm = start_jvm(settings)
            if jvm is not None:
                _prestarted.append(jvm)


def fork_prestarted() -> None:
    """Fork the prefork server of the prestarted JVM, if any; this process must not have threads."""
    with _lock:
        for jvm in _prestarted:
            jvm.fork_prefork_server()


def take_prestarted(settings: Mapping[str, str]) -> Jvm | None:
    """Return the prestarted JVM, which the caller then owns, or None if there is none.

    If a session with `settings` needs another command line, the JVM is killed, and None is
    returned.
    """
    with _lock:
        jvm = _prestarted.pop() if _prestarted else None
    if jvm is not None and jvm.command != jvm_command(settings):
        jvm.kill()
        return None
    return jvm


def keep(jvm: Jvm) -> None:
    """Keep the session's JVM from ending: hold a reference to it until `end_all`."""
    with _lock:
        _kept.append(jvm)


def session_jvm() -> Jvm | None:
    """Return the JVM of the session, or None if no session runs in a JVM of this module."""
    with _lock:
        return _kept[-1] if _kept else None


def forked_python() -> tuple[str, Mapping[str, str]] | None:
    """Return a command that runs a module in a fork of the prefork server, and its environment.

    The module is one of `ingestd`, given by the arguments `-m MODULE`; the command ends when the
    fork ends. The environment contains only additional variables. Returns None if this module did
    not start the session's JVM, or if that has no prefork server.
    """
    with _lock:
        commands = [(jvm.python, jvm.variables) for jvm in _kept]
    for command, variables in commands:
        if command is not None:
            return command, variables
    return None


def archive_wanted() -> Path | None:
    """Return the path of the class archive that the session's JVM uses if it exists.

    Returns None if this module did not start the JVM, or if class archives are not used.
    """
    with _lock:
        return class_archive_path() if _kept else None


def end_unused() -> None:
    """Kill the prestarted JVM, if no session has taken it."""
    with _lock:
        unused = _prestarted[:]
        _prestarted.clear()
    for jvm in unused:
        jvm.kill()


def end_all() -> None:
    """End all JVMs of this process and wait for their exit.

    The JVM of the session is asked to exit; a prestarted JVM is killed.
    """
    end_unused()
    with _lock:
        kept = _kept[:]
        _kept.clear()
    for jvm in kept:
        jvm.close()


def _is_plain(settings: Mapping[str, str], home: Path) -> bool:
    """Return whether the session needs no feature of PySpark's launcher."""
    options = settings[JVM_OPTIONS]
    return (
        sys.platform != "win32"
        and uses_internals()
        and settings["spark.master"].split("[")[0] == "local"
        and not any(name in os.environ for name in _LAUNCHER_VARIABLES)
        and not (home / "conf").exists()
        and not any(name.startswith(_LAUNCHER_SETTINGS) for name in settings)
        and not any(mark in options for mark in "\"'\\")
    )


def _environment(settings: Mapping[str, str], address: Path) -> dict[str, str]:
    """Return the environment of the JVM.

    It has no SPARK_HOME, so that workers import the installed PySpark and not a source archive.
    """
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
    """Ignore signals that are sent to the process group: the daemon itself ends the JVM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _read_gateway(document: bytes) -> Gateway:
    port, size = struct.unpack_from("!ii", document)
    return Gateway(port, document[8 : 8 + size].decode())
