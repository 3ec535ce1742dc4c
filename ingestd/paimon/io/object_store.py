"""`FileIO` on object stores, with conditional puts.

Publishing is a put that the store refuses if the name is taken (`If-None-Match: *`, in OSS
`x-oss-forbid-overwrite: true`), so two writers never replace each other's snapshots and no lock is
needed. Directories do not exist in a store: `make_directory` writes an empty object, which listings
leave out.

A store is configured by Paimon's option names. Settings without an option are read from the
environment, as by the cloud's own tools: AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS,
AZURE_STORAGE_ACCOUNT_KEY, web identity, instance metadata.
"""

import contextlib
import logging
import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import obstore
import pyarrow as pa
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from ingestd.errors import ConfigError, StorageError, UnsupportedError
from ingestd.http_request import one_line
from ingestd.paimon.io.entries import DirectoryEntry
from ingestd.paimon.io.local import room_for
from ingestd.paimon.io.range_reader import RangeReader
from ingestd.paimon.io.store_options import (
    AZURE,
    GCS,
    MOST_CREDENTIALS,
    OSS,
    S3,
    SCHEMES,
    Family,
    StoreCredentials,
    client_name,
)

_LOG = logging.getLogger(__name__)
_DIRECTORY = ".directory"
_WHOLE_BYTES = 8 << 20
"""Objects up to this size are read with one request."""
_MISSING = (FileNotFoundError, NotFoundError)
_REFUSED = (PermissionDeniedError, UnauthenticatedError)
PART_BYTES = 8 << 20
_SINGLE_PUT_BYTES = 16 << 20
"""Files up to this size are uploaded with one request, which holds them in memory."""
_PARTS_AT_ONCE = 4
_RETRIES: Any = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}
_PLAIN: Any = {"allow_http": True}
_CREATE_IN_OSS = {"x-oss-forbid-overwrite": "true"}
"""The condition of a put in OSS, which does not have `If-None-Match`."""
_CREATING = "oss+create"
"""The scheme of clients of OSS whose requests have this condition."""
_MOST_SAID = 1000
_MOST_CLIENTS = 64
"""Buckets with constant options; clients with credentials that expire are not among them."""
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
_AZURE_ENDPOINT = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")


@dataclass(frozen=True, slots=True)
class ObjectFileIO:
    """`FileIO` on object stores; `options` are their options with values, secrets included.

    With `credentials`, each request uses their current options instead. Methods raise StorageError
    if a request fails, FileNotFoundError if an object to read is missing.
    """

    options: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    credentials: StoreCredentials | None = None

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of an object.

        Raises FileNotFoundError if the object is missing, StorageError if the storage fails.
        """
        store, key = self._resolve(path)
        with self._errors("read", path, missing_passes=True):
            return obstore.get(store, key).bytes().to_bytes()

    def write_new(self, path: str, data: bytes) -> None:
        """Write an object that must not exist yet. Raises StorageError if it exists.

        An object with exactly these bytes counts as written.
        """
        if not self.try_write_atomic(path, data):
            raise StorageError(f"cannot write {path}: File exists")

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish an object if the name is free; return False, and change nothing, if it is taken.

        An object with exactly these bytes counts as published: if a response was lost, the repeated
        request finds the object that the first request wrote. After a StorageError the outcome is
        unknown.
        """
        store, key = self._resolve(path)
        with self._errors("publish", path):
            if _is_oss(path):
                self._prove(path)
            try:
                self._create(path, data)
            except AlreadyExistsError:
                return obstore.get(store, key).bytes().to_bytes() == data
            return True

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace an object atomically, or create it."""
        store, key = self._resolve(path)
        with self._errors("overwrite", path):
            obstore.put(store, key, data)

    def list_names(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; [] if it does not exist."""
        return [entry.name for entry in self.list_entries(directory)]

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        """Return the entries of a directory, sorted by name; [] if it does not exist.

        Directories have the size and the modification time 0.
        """
        store, key = self._resolve(directory)
        with self._errors("list", directory):
            listing = obstore.list_with_delimiter(store, key)
        entries = [
            DirectoryEntry(_name(folder), True, 0, 0) for folder in listing["common_prefixes"]
        ]
        for object_meta in listing["objects"]:
            if (name := _name(object_meta["path"])) != _DIRECTORY:
                modified = int(object_meta["last_modified"].timestamp() * 1000)
                entries.append(DirectoryEntry(name, False, object_meta["size"], modified))
        return sorted(entries, key=lambda entry: entry.name)

    def exists(self, path: str) -> bool:
        """Return whether an object with this path, or any object below it, exists."""
        store, key = self._resolve(path)
        with self._errors("look at", path):
            try:
                obstore.head(store, key)
            except _MISSING:
                return any(True for _ in _below(store, key))
            return True

    def size(self, path: str) -> int:
        """Return the size of an object in bytes.

        Raises FileNotFoundError if the object is missing, StorageError if the storage fails.
        """
        store, key = self._resolve(path)
        with self._errors("look at", path, missing_passes=True):
            return int(obstore.head(store, key)["size"])

    def make_directory(self, path: str) -> None:
        """Create a directory by writing an empty object into it."""
        self.overwrite(f"{path}/{_DIRECTORY}", b"")

    def delete_quietly(self, path: str) -> None:
        """Delete an object if it exists; log a failure, never raise it."""
        try:
            store, key = self._resolve(path)
            with self._errors("delete", path, missing_passes=True):
                obstore.delete(store, key)
        except FileNotFoundError:
            return
        except (ConfigError, StorageError, UnsupportedError) as error:
            _LOG.warning("file_not_deleted", extra={"ctx": {"path": path, "error": error.message}})

    def delete_empty_directory(self, path: str) -> bool:
        """Delete an empty directory; return False if it is not empty or was not created.

        Only a directory created by `make_directory` can be empty.
        """
        store, key = self._resolve(path)
        with self._errors("delete", path):
            if set(_below(store, key)) != {f"{key}/{_DIRECTORY}"}:
                return False
            obstore.delete(store, f"{key}/{_DIRECTORY}")
            return True

    def delete_tree(self, path: str) -> None:
        """Delete all objects below a directory, if it exists."""
        store, key = self._resolve(path)
        with self._errors("delete", path):
            if keys := list(_below(store, key)):
                obstore.delete(store, keys)

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory: copy all its objects, then delete the old ones; this is not atomic.

        Raises StorageError if the new name is taken, or the directory does not exist.
        """
        store, old = self._resolve(source)
        _, new = self._resolve(target)
        keys = list(_below(store, old))
        if self.exists(target) or not keys:
            raise StorageError(f"cannot rename {source} to {target}: taken, or nothing there")
        with self._errors("rename", source):
            for key in keys:
                obstore.copy(store, key, new + key[len(old) :])
            obstore.delete(store, keys)

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """Yield a stream to a local temporary file, and upload that file unless the block raises.

        Raises StorageError if the path is taken, DiskFullError if the local disk is full.
        """
        store, key = self._resolve(path)
        with room_for(path), tempfile.NamedTemporaryFile(prefix="ingestd-upload-") as local:
            with pa.OSFile(local.name, "wb") as stream:
                yield stream
            with self._errors("write", path):
                upload_new(
                    store, key, Path(local.name), path, lambda file: self._create(path, file)
                )

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a seekable stream of an object.

        Raises FileNotFoundError if the object is missing, StorageError if the storage fails.
        """
        store, key = self._resolve(path)
        with self._errors("open", path, missing_passes=True):
            response = obstore.get(store, key)
            size = int(response.meta["size"])
            if size <= _WHOLE_BYTES:
                return pa.BufferReader(pa.py_buffer(response.bytes()))
        return pa.PythonFile(ObjectReader(self, path, size), mode="r")

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return `length` bytes of an object from the offset `start` on.

        Raises StorageError if the store cannot return them.
        """
        store, key = self._resolve(path)
        with self._errors(f"read from {start}:", path):
            return obstore.get_range(store, key, start=start, length=length).to_bytes()

    @contextlib.contextmanager
    def _errors(self, what: str, path: str, *, missing_passes: bool = False) -> Iterator[None]:
        """Raise errors of the store with the path; credentials that it refuses are not kept."""
        try:
            with _storage_errors(what, path, missing_passes=missing_passes):
                yield
        except StorageError as error:
            if self.credentials is not None and isinstance(error.__cause__, _REFUSED):
                self.credentials.discard()
            raise

    def _create(self, path: str, content: bytes | Path) -> None:
        """Put an object with one request. Raises AlreadyExistsError if its name is taken."""
        store, key = self._resolve(path, creates=True)
        # Every request of this client to OSS has the condition as a header.
        mode: Literal["overwrite", "create"] = "overwrite" if _is_oss(path) else "create"
        obstore.put(store, key, content, mode=mode, use_multipart=False)

    def _prove(self, path: str) -> None:
        """Check once per process that a bucket of OSS creates a name once.

        With versioning, OSS ignores the condition. Raises StorageError if it does.
        """
        bucket = "/".join(path.split("/")[:3])
        if bucket in _PROVED:
            return
        probe = f"{path}.ingestd-probe-{uuid.uuid4()}"
        try:
            self._create(probe, b"1")
            self._create(probe, b"2")
        except AlreadyExistsError:
            _PROVED.add(bucket)
            return
        finally:
            self.delete_quietly(probe)
        raise StorageError(
            f"cannot publish {path}: {bucket} does not keep two writers apart, as it ignores "
            "x-oss-forbid-overwrite; disable versioning of the bucket, or use another one"
        )

    def _resolve(self, path: str, *, creates: bool = False) -> tuple[ObjectStore, str]:
        scheme, _, rest = path.partition("://")
        bucket, _, key = rest.partition("/")
        if creates and _is_oss(path):
            scheme = _CREATING
        if self.credentials is None:
            return open_store(scheme, bucket, self.options), key.strip("/")
        return _renewed_client(scheme, bucket, self.credentials).current(), key.strip("/")


class ObjectReader(RangeReader):
    """Seekable stream of an object of `size` bytes; each read is one request by `file_io`.

    Reads raise StorageError with the path.
    """

    def __init__(self, file_io: ObjectFileIO, path: str, size: int) -> None:
        super().__init__(size)
        self._io = file_io
        self._path = path

    def read_range(self, start: int, length: int) -> bytes:
        """Return `length` bytes of the object from the offset `start` on.

        Raises StorageError if the store cannot return them.
        """
        return self._io.read_range(self._path, start, length)


class RenewedClient:
    """The client of a bucket whose credentials expire; a new one is opened when they have changed.

    `scheme` and `bucket` are parts of the path, as for `open_store`.
    """

    def __init__(self, scheme: str, bucket: str, credentials: StoreCredentials) -> None:
        self._scheme, self._bucket, self._credentials = scheme, bucket, credentials
        self._lock = threading.Lock()
        self._options: frozenset[tuple[str, str]] | None = None
        self._client: ObjectStore | None = None

    def current(self) -> ObjectStore:
        """Return a client with credentials that are valid now.

        Raises the errors of `StoreCredentials.current` and of `open_store`.
        """
        options = self._credentials.current()
        with self._lock:
            if self._client is None or options != self._options:
                self._client = _make_client(self._scheme, self._bucket, options)
                self._options = options
            return self._client


@lru_cache(maxsize=MOST_CREDENTIALS)
def _renewed_client(scheme: str, bucket: str, credentials: StoreCredentials) -> RenewedClient:
    return RenewedClient(scheme, bucket, credentials)


def open_file_io(options: Mapping[str, str]) -> ObjectFileIO:
    """Return a FileIO for object stores; `options` are those of the stores, by Paimon's names."""
    return ObjectFileIO(frozenset(options.items()))


def _is_oss(path: str) -> bool:
    return path.startswith("oss://")


def _below(store: ObjectStore, key: str) -> Iterable[str]:
    for page in obstore.list(store, key):
        yield from (object_meta["path"] for object_meta in page)


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


@contextlib.contextmanager
def _storage_errors(what: str, path: str, *, missing_passes: bool = False) -> Iterator[None]:
    try:
        yield
    except _MISSING as error:
        if missing_passes:
            raise FileNotFoundError(path) from error
        raise StorageError(f"cannot {what} {path}: {failure_text(error)}") from error
    except (BaseError, OSError) as error:
        raise StorageError(f"cannot {what} {path}: {failure_text(error)}") from error


def upload_new(
    store: ObjectStore, key: str, file: Path, path: str, create: Callable[[Path], None]
) -> None:
    """Upload a file to a key that must be free; `path` is the object's name in errors.

    Small files are uploaded with one conditional put, by `create`, larger ones in parallel parts,
    with at most 32 MB in memory. Data files have random names: if an object has exactly the bytes
    of the file after an error, the upload succeeded, and only its response was lost. Parts of an
    aborted upload stay invisible in the store until it removes them.

    Raises StorageError if the key is taken, and errors of the store's library.
    """
    size = file.stat().st_size
    try:
        if size <= _SINGLE_PUT_BYTES:
            create(file)
            return
        # Stores do not support conditions on multipart uploads, so the name is looked up first.
        if _size_of(store, key) is not None:
            raise StorageError(f"cannot write {path}: the object already exists")
        obstore.put(store, key, file, chunk_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE)
    except AlreadyExistsError as error:
        if _size_of(store, key) is None:
            raise  # refused although the object does not exist: another try may succeed
        if not _holds(store, key, file):
            raise StorageError(f"cannot write {path}: the object already exists") from error
    except BaseError:
        if size <= _SINGLE_PUT_BYTES or not _holds(store, key, file):
            raise


def _size_of(store: ObjectStore, key: str) -> int | None:
    try:
        return int(obstore.head(store, key)["size"])
    except _MISSING:
        return None


def _holds(store: ObjectStore, key: str, file: Path) -> bool:
    """Return whether an object has exactly the bytes of a file."""
    size = file.stat().st_size
    if _size_of(store, key) != size:
        return False
    with file.open("rb") as local:
        for start in range(0, size, PART_BYTES):
            chunk = local.read(PART_BYTES)
            if obstore.get_range(store, key, start=start, length=len(chunk)).to_bytes() != chunk:
                return False
    return True


@lru_cache(maxsize=_MOST_CLIENTS)
def open_store(scheme: str, bucket: str, options: frozenset[tuple[str, str]]) -> ObjectStore:
    """Return this process's client of a bucket with constant options.

    `bucket` is the part of the path between its scheme and the first slash: for Azure,
    `container@account.host`. Raises UnsupportedError for a scheme that is not in `SCHEMES`,
    ConfigError for options that the store's client refuses.
    """
    return _make_client(scheme, bucket, options)


def _make_client(scheme: str, bucket: str, options: frozenset[tuple[str, str]]) -> ObjectStore:
    family = OSS if scheme == _CREATING else SCHEMES.get(scheme)
    if family is None:
        raise UnsupportedError(f"{scheme}://{bucket}: there is no store for this scheme")
    try:
        config = _config(family, options)
        if scheme == _CREATING:
            return _oss(bucket, config, _CREATE_IN_OSS)
        return _MAKERS[family.title](bucket, config)
    except BaseError as error:
        message = f"{scheme}://{bucket}: {failure_text(error)}; check the options of the store"
        raise ConfigError(message) from error


def failure_text(error: BaseException) -> str:
    """Return the message of an error of the object store library, as one line of limited length.

    The debug output that the library appends is left out. The length is limited because the message
    may contain a whole response of the server.
    """
    return one_line(str(error).partition("\n\nDebug source")[0].strip(), _MOST_SAID)


def _config(family: Family, options: frozenset[tuple[str, str]]) -> dict[str, str]:
    named = ((client_name(family, name), value) for name, value in options)
    return {name: value for name, value in named if name is not None}


def _s3(bucket: str, config: dict[str, str]) -> ObjectStore:
    style = "virtual_hosted_style_request"
    if style in config:
        config[style] = "false" if config[style].lower() == "true" else "true"
    if not any(os.environ.get(name) for name in _REGION):
        config.setdefault("region", "us-east-1")
    client_config: Any = config
    plain = _plain(config.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", ""))
    return S3Store(bucket, config=client_config, client_options=plain, retry_config=_RETRIES)


def _oss(
    bucket: str, config: dict[str, str], headers: Mapping[str, str] | None = None
) -> ObjectStore:
    """Open an OSS bucket by the endpoint for S3 clients, with the bucket in the host name."""
    scheme, _, host = config.get("endpoint", "").rpartition("://")
    if not host:
        raise ConfigError(f"oss://{bucket}: give the endpoint of OSS as 'fs.oss.endpoint'")
    host = f"s3.{host}" if host.startswith("oss-") else host
    config["endpoint"] = f"{scheme or 'https'}://{bucket}.{host}"
    config.setdefault("region", "us-east-1")
    client_config: Any = {**config, "virtual_hosted_style_request": "true"}
    client: Any = {"default_headers": {**(headers or {})}, **(_plain(config["endpoint"]) or {})}
    return S3Store(bucket, config=client_config, client_options=client, retry_config=_RETRIES)


def _gcs(bucket: str, config: dict[str, str]) -> ObjectStore:
    """Open a GCS bucket; plain HTTP is allowed, as a key file may name an emulator."""
    client_config: Any = config
    return GCSStore(bucket, config=client_config, client_options=_PLAIN, retry_config=_RETRIES)


def _azure(address: str, config: dict[str, str]) -> ObjectStore:
    container, _, host = address.partition("@")
    if host:
        config["account_name"] = host.partition(".")[0]
    endpoint = next((os.environ[name] for name in _AZURE_ENDPOINT if os.environ.get(name)), "")
    if endpoint:
        config["endpoint"] = endpoint
    client_config: Any = config
    plain = _plain(endpoint)
    return AzureStore(container, config=client_config, client_options=plain, retry_config=_RETRIES)


def _plain(endpoint: str) -> Any:  # noqa: ANN401  (a type of the library's stubs alone)
    return _PLAIN if endpoint.startswith("http://") else None


_PROVED: set[str] = set()
"""Buckets of OSS that create a name once."""
_MAKERS: Mapping[str, Callable[[str, dict[str, str]], ObjectStore]] = {
    S3.title: _s3,
    OSS.title: _oss,
    GCS.title: _gcs,
    AZURE.title: _azure,
}
