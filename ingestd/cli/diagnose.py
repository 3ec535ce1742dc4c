"""`ingestd diagnose`: write an archive about a pipeline, without secrets, to send to others."""

import importlib.metadata
import io
import json
import os
import platform
import resource
import shutil
import tarfile
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ingestd.cli.output import AsJson, print_json, say
from ingestd.cli.watch import CaFile, DaemonAddress
from ingestd.config.effective import effective_settings
from ingestd.config.load import LoadedConfig, load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.daemon.console.table_details import TableDetails, read_details
from ingestd.daemon.service import page_access
from ingestd.daemon.status import build_info
from ingestd.errors import ConfigError, IngestdError
from ingestd.ingest.tables.pipeline_warehouse import open_catalog
from ingestd.log import MASK, add_secrets, is_secret_name, redact
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.schema import encode_schema

_LIBRARIES = ("ingestd", "pyspark", "pyarrow", "confluent-kafka", "numpy", "msgspec", "pydantic")
_MOST_TABLES = 200
_LOG_LINES = 2_000
_README = """Written by `ingestd diagnose`. Passwords, tokens and keys of the configuration are
masked. It contains names of hosts, topics, tables and columns, and messages of errors, which may
quote single values of records. Look through it before you send it.
"""


def diagnose(
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The archive; default `ingestd-diagnose-TIME.tar.gz`."),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="URL of the daemon; default `http.listen`.")
    ] = None,
    ca: CaFile = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="Log file, whose last 2,000 lines are added.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write an archive about a pipeline, without secrets, to send with a question.

    It has the effective configuration, the versions, facts about this machine, status and metrics
    of the daemon if it responds, schema, newest snapshots and files of at most 200 tables, and the
    end of a log file. A part that cannot be read contains the reason instead.

    **Examples**

    ingestd diagnose -c shop.yaml

    ingestd diagnose -c shop.yaml --url http://ingestd.data:8080 --log /var/log/ingestd.log
    """
    if url is not None:
        DaemonAddress(url)  # an invalid URL is reported before the archive is created
    path = output or Path(f"ingestd-diagnose-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.tar.gz")
    _write_archive(path, _parts(config, url, ca, log))
    if as_json:
        print_json({"archive": str(path)})
    else:
        say(f"{path} written; look through it before you send it.")


def _write_archive(path: Path, parts: Iterable[tuple[str, str]]) -> None:
    """Write a new archive that only this user can read, with secrets masked in its parts.

    Raises ConfigError if the file exists.
    """
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ConfigError(f"{path} exists: name another file by --output") from error
    with os.fdopen(number, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in parts:
            data = redact(content).encode(errors="replace")
            entry = tarfile.TarInfo(f"ingestd-diagnose/{name}")
            entry.size, entry.mtime = len(data), int(time.time())
            archive.addfile(entry, io.BytesIO(data))


def _parts(
    config: Path, url: str | None, ca: Path | None, log: Path | None
) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each file of the archive."""
    yield "README.txt", _README
    yield "versions.json", _json(_versions())
    try:
        loaded = load_config(config)
    except IngestdError as error:
        yield "configuration.txt", error.message
    else:
        yield "configuration.txt", _configuration(loaded)
        yield "machine.json", _json(_machine(loaded))
        for page in ("status", "metrics", "readyz"):
            yield f"{page}.txt", _or_reason(partial(_page, f"/{page}", loaded, url, ca))
        yield "tables.json", _or_reason(lambda: _json(_tables(loaded)))
    if log is not None:
        yield "log.txt", _or_reason(lambda: _last_lines(log))


def _or_reason(read: Callable[[], str]) -> str:
    """Return the result of `read`, or the reason why it failed."""
    try:
        return read()
    except (IngestdError, OSError) as error:
        return f"cannot be read: {error}\n"


def _json(document: object) -> str:
    return json.dumps(document, indent=1, default=str) + "\n"


def _configuration(loaded: LoadedConfig) -> str:
    settings = effective_settings(loaded)
    lines = (f"{setting.key} = {setting.value}  # {setting.origin}" for setting in settings)
    return "\n".join(lines) + "\n"


def _versions() -> Mapping[str, object]:
    libraries = {name: _version(name) for name in _LIBRARIES}
    return {**asdict(build_info(libraries["ingestd"])), "libraries": libraries}


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _machine(loaded: LoadedConfig) -> Mapping[str, object]:
    folders = loaded.config.spark.get("spark.local.dir", tempfile.gettempdir())
    folders = os.environ.get("SPARK_LOCAL_DIRS", folders)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "java_home": os.environ.get("JAVA_HOME"),
        "java": shutil.which("java"),
        "cpus": os.cpu_count(),
        "cpus_of_this_process": len(os.sched_getaffinity(0)),
        "memory_bytes": pages,
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "scratch": {folder: _free_bytes(folder) for folder in folders.split(",")},
        "time": datetime.now(UTC),
        "variables": sorted(name for name in os.environ if name.startswith("INGESTD__")),
    }


def _free_bytes(folder: str) -> int | str:
    """Return the free bytes of a folder's disk, or why they are unknown."""
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:
        return str(error)


def _page(path: str, loaded: LoadedConfig, url: str | None, ca: Path | None) -> str:
    return _address(loaded, url, ca).page(path)


def _address(loaded: LoadedConfig, url: str | None, ca: Path | None) -> DaemonAddress:
    access = page_access(loaded)
    scheme = "http" if access.certificate is None else "https"
    host, _, port = loaded.config.http.listen.rpartition(":")
    if host in ("0.0.0.0", "[::]", ""):  # noqa: S104  (not listened on)
        host = "127.0.0.1"
    auth_file = None if access.auth_file is None else Path(access.auth_file)
    if auth_file is not None and auth_file.is_file():
        add_secrets([auth_file.read_text(errors="replace").strip()])
    return DaemonAddress(url or f"{scheme}://{host}:{port}", ca, auth_file)


def _tables(loaded: LoadedConfig) -> Mapping[str, object]:
    """Return the details of the tables of the pipeline's database, or why one cannot be read."""
    settings = pipeline_settings(loaded)
    catalog = open_catalog(settings)
    names = catalog.list_tables(settings.database)
    tables: dict[str, object] = {}
    for name in names[:_MOST_TABLES]:
        try:
            details = read_details(catalog.get_table(Identifier(settings.database, name)))
        except IngestdError as error:
            tables[name] = error.message
        else:
            tables[name] = _summary(details)
    return {"database": settings.database, "number": len(names), "tables": tables}


def _summary(details: TableDetails) -> Mapping[str, object]:
    schema: dict[str, Any] = json.loads(encode_schema(details.schema))
    schema["options"] = {
        name: MASK if is_secret_name(name) else value for name, value in schema["options"].items()
    }
    return {
        "schema": schema,
        "schema_changes": details.schema_changes,
        "snapshots": [asdict(snapshot) for snapshot in details.snapshots],
        "levels": [asdict(level) for level in details.levels],
    }


def _last_lines(path: Path) -> str:
    with path.open(errors="replace") as file:
        return "".join(deque(file, _LOG_LINES))
