"""The directory of a table's Iceberg metadata: documents by version, the hint, and manifests.

Manifests are written before the document that refers to them, and the hint of the newest version is
written last, so readers see only complete snapshots, even if the process ends in between. If
several processes write a version, one of them succeeds.
"""

import contextlib
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ingestd.errors import FormatError
from ingestd.paimon.iceberg.iceberg_types import Json
from ingestd.paimon.iceberg.manifest_format import (
    DELETES,
    IcebergEntry,
    IcebergManifest,
    decode_list,
    decode_manifest,
)
from ingestd.paimon.iceberg.table_metadata import (
    SnapshotTexts,
    encode_metadata,
    parse_metadata,
    snapshot_texts,
)
from ingestd.paimon.io.file_io import DirectoryEntry, FileIO

_LOG = logging.getLogger(__name__)
_HINT = "version-hint.text"
_DOCUMENT = ".metadata.json"
_VERSION = re.compile(r"v(\d+)\.metadata\.json")
_REMEMBERED_BYTES = 1 << 18
"""Size of the largest document or manifest list that is remembered, in bytes."""


@dataclass(slots=True)
class _Memory:
    """The document and the manifest list that were read or written last, except for large ones.

    Each is a pair of the file's bytes and its decoded content, which is never changed. The content
    is used only while the file has the same bytes, so other writers may replace the file.
    """

    document: tuple[bytes, Json] = (b"", None)
    texts: SnapshotTexts = field(default_factory=dict)
    manifests: tuple[bytes, list[IcebergManifest]] = (b"", [])


@dataclass(frozen=True, slots=True)
class MetadataStore:
    """The directory of a table's Iceberg metadata.

    Files are found by their name in the directory `folder`; the directory in a stored path is
    ignored.
    """

    io: FileIO
    folder: str
    _memory: _Memory = field(default_factory=_Memory, repr=False, compare=False)

    def newest(self) -> tuple[int, Json] | None:
        """Return the newest version that has a document, and the document; None without documents.

        Raises FormatError if the document is damaged, FileNotFoundError if it was deleted
        meanwhile.
        """
        hint = self._hint()
        if hint is not None and not self.io.exists(self.document_path(hint + 1)):
            with contextlib.suppress(FileNotFoundError):
                return hint, self.read(hint)
        version = self.newest_version()
        return None if version is None else (version, self.read(version))

    def newest_version(self) -> int | None:
        """Return the newest version that has a document, or None without documents."""
        hint = self._hint()
        if hint is None or not self.io.exists(self.document_path(hint)):
            return max(self.versions(), default=None)
        while self.io.exists(self.document_path(hint + 1)):
            hint += 1
        return hint

    def versions(self) -> list[int]:
        """Return the versions that have a document, ascending."""
        matches = map(_VERSION.fullmatch, self.io.list_names(self.folder))
        return sorted(int(match[1]) for match in matches if match is not None)

    def read(self, version: int) -> Json:
        """Return the document of a version.

        Raises FileNotFoundError if it does not exist, FormatError if it is damaged.
        """
        path = self.document_path(version)
        data = self.io.read_bytes(path)
        known, document = self._memory.document
        if data != known:
            document = parse_metadata(data, path)
            self._remember_document(data, document)
        return document

    def read_list(self, path: str) -> list[IcebergManifest]:
        """Return the entries of the manifest list at a path.

        Raises FileNotFoundError if the list does not exist, FormatError if it is damaged.
        """
        here = self._here(path)
        data = self.io.read_bytes(here)
        known, manifests = self._memory.manifests
        if data != known:
            manifests = decode_list(data, here)
            self.remember_list(data, manifests)
        return manifests

    def remember_list(self, data: bytes, manifests: list[IcebergManifest]) -> None:
        """Cache the entries of a manifest list, so that `read_list` need not decode them again.

        `data` has the bytes of the list. Large lists are not cached.
        """
        if len(data) <= _REMEMBERED_BYTES:
            self._memory.manifests = (data, manifests)

    def _remember_document(self, data: bytes, document: Json) -> None:
        if len(data) <= _REMEMBERED_BYTES:
            self._memory.document = (data, document)

    def _encode(self, document: Json) -> bytes:
        texts = snapshot_texts(document, self._memory.texts)
        data = encode_metadata(document, texts)
        if len(data) <= _REMEMBERED_BYTES:
            self._memory.texts = texts
        return data

    def read_manifest(self, manifest: IcebergManifest) -> list[IcebergEntry]:
        """Return the entries of a manifest.

        Raises FileNotFoundError if the manifest does not exist, FormatError if it is damaged.
        """
        here = self._here(manifest.manifest_path)
        return decode_manifest(self.io.read_bytes(here), here, manifest.first_row_id)

    def publish(self, document: Json, files: Mapping[str, bytes]) -> bool:
        """Write new files and a document; return False if its version has a document already.

        The version is the id of the document's newest snapshot. `files` has the content of the new
        files by path. If False is returned, the new files are deleted; otherwise the hint is
        updated.
        """
        for path, data in files.items():
            self.io.write_new(path, data)
        version, data = document["current-snapshot-id"], self._encode(document)
        if not self.io.try_write_atomic(self.document_path(version), data):
            for path in files:
                self.io.delete_quietly(path)
            return False
        self._remember_document(data, document)
        self._overwrite_hint(version)
        return True

    def replace(self, document: Json, files: Mapping[str, bytes]) -> None:
        """Write new files and a document, which replaces the document of the same version.

        The version is the id of the document's newest snapshot. `files` has the content of the new
        files by path. Documents of later versions are deleted, and the hint is updated.
        """
        for path, data in files.items():
            self.io.write_new(path, data)
        version = document["current-snapshot-id"]
        self.overwrite(document)
        self.delete_documents(later for later in self.versions() if later > version)
        self._overwrite_hint(version)

    def overwrite(self, document: Json) -> None:
        """Write a document, which replaces the document of the same version; the hint stays.

        The version is the id of the document's newest snapshot.
        """
        data = self._encode(document)
        self.io.overwrite(self.document_path(document["current-snapshot-id"]), data)
        self._remember_document(data, document)

    def unnamed_files(self, older_than_ms: int) -> list[DirectoryEntry]:
        """Return the files that no readable document refers to and that are older than a time.

        Files count if they were last modified before `older_than_ms`, in milliseconds of the epoch
        by the store's clock. Documents and the hint are not returned. Raises FormatError if a
        document refers to a damaged manifest list or a damaged manifest of deletion vectors,
        because the files in it are then unknown.
        """
        entries = self.io.list_entries(self.folder)  # before the documents, which name newer files
        named = {_HINT, *self._named_files()}
        return [
            entry
            for entry in entries
            if not entry.is_directory
            and entry.modified_ms < older_than_ms
            and entry.name not in named
            and not entry.name.endswith(_DOCUMENT)  # those of a REST catalog may be here, too
        ]

    def documents(self) -> list[Json]:
        """Return the readable documents in the directory, oldest first; log the damaged ones.

        If another process deletes a document meanwhile, it has written a newer document, so the
        directory is listed again.
        """
        while True:
            try:
                documents = [self._readable(version) for version in self.versions()]
            except FileNotFoundError:
                continue
            return [document for document in documents if document is not None]

    def _readable(self, version: int) -> Json | None:
        try:
            return self.read(version)
        except FormatError as error:
            _LOG.warning("iceberg_document_skipped", extra={"ctx": {"error": str(error)}})
            return None

    def _named_files(self) -> Iterator[str]:
        lists = {
            entry["manifest-list"]
            for document in self.documents()
            for entry in document["snapshots"]
        }
        for path in lists:
            yield _name(path)
            try:
                manifests = self.read_list(path)
            except FileNotFoundError:
                continue  # expired meanwhile
            yield from map(_name, self._files_of(manifests))

    def repair_hint(self, version: int) -> None:
        """Write the version hint again if it is not `version`, the newest version."""
        if self._hint() != version:
            self._overwrite_hint(version)

    def _overwrite_hint(self, version: int) -> None:
        """Write the hint of a version, unless another process has written a later document."""
        later = {version + 1, max(version + 1, self._hint() or 0)}
        if not any(self.io.exists(self.document_path(number)) for number in later):
            self.io.overwrite(f"{self.folder}/{_HINT}", str(version).encode())

    def delete_documents_before(self, version: int) -> None:
        """Delete the documents of the consecutive versions below `version`, without a listing.

        The oldest document is deleted first: if the process is killed, the documents that remain
        are still consecutive, and the next call finds them.
        """
        first = version
        while self.io.exists(self.document_path(first - 1)):
            first -= 1
        self.delete_documents(range(first, version))

    def delete_documents(self, versions: Iterable[int]) -> None:
        """Delete the documents of these versions, if they exist."""
        for version in versions:
            self.io.delete_quietly(self.document_path(version))

    def delete_lists(self, paths: Collection[str], kept: str) -> None:
        """Delete manifest lists, and the files in them that are not in the list `kept`.

        The files are manifests, and files with deletion vectors. `paths` are the paths of the lists
        to delete, `kept` is the path of a list that remains. The files of a damaged or missing list
        are unknown, so they stay. Raises FileNotFoundError or FormatError if the list `kept` is
        missing or damaged.
        """
        if not paths:
            return
        manifests = self.read_list(kept)
        used = {self._here(path) for path in self._files_of(manifests)}
        for path in paths:
            unused = self._known_files(path) - used
            for here in unused:
                self.io.delete_quietly(here)
            used |= unused
            self.io.delete_quietly(self._here(path))

    def _files_of(self, manifests: Iterable[IcebergManifest]) -> Iterator[str]:
        """Return the paths of manifests and of the files with vectors that they list."""
        for manifest in manifests:
            yield manifest.manifest_path
            if manifest.content == DELETES:
                with contextlib.suppress(FileNotFoundError):
                    yield from {str(e.data_file["file_path"]) for e in self.read_manifest(manifest)}

    def _known_files(self, path: str) -> set[str]:
        try:
            return {self._here(file) for file in self._files_of(self.read_list(path))}
        except (FileNotFoundError, FormatError):
            return set()

    def _hint(self) -> int | None:
        try:
            text = self.io.read_bytes(f"{self.folder}/{_HINT}").strip()
        except FileNotFoundError:
            return None
        return int(text) if text.isdigit() else None

    def document_path(self, version: int) -> str:
        """Return the path of the document of a version."""
        return f"{self.folder}/v{version}.metadata.json"

    def _here(self, path: str) -> str:
        """Return the path of a file in this directory, whatever directory `path` has."""
        return f"{self.folder}/{_name(path)}"


def _name(path: str) -> str:
    return path.rpartition("/")[2]
