"""The claims file, written after a batch: tables that cover more than their records state.

A batch commits only to the tables that it changes, so the progress record of another table may be
older than the progress of the pipeline. A claim is an implication: *if* the newest record of the
table is the claimed record, the table lacks no row below the positions in the file. A rollback,
restore or drop of the table, or an old copy of the file, cannot make a claim false; the claim then
only does not apply. Without the file, records are read again, and no row is lost.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ingestd.ingest.tables.pipeline_warehouse import pipeline_folder
from ingestd.ingest.tables.progress import (
    DAMAGED,
    PipelineProgress,
    decode_pipeline,
    encode_pipeline,
)
from ingestd.paimon.io.file_io import FileIO

_LOG = logging.getLogger(__name__)
_VERSION = 4


@dataclass(frozen=True, slots=True)
class ClaimedRecord:
    """The id of a table's newest progress record, and of the snapshot that contains it.

    `rows` is the number of rows that the table had when the claims file was written.
    """

    record_id: str
    snapshot_id: int
    rows: int


@dataclass(frozen=True, slots=True)
class Claims:
    """The progress of a pipeline, and which tables are complete up to it.

    `complete` maps tables to progress records: if the newest record of a table is this one, the
    table lacks no row below `progress.end`. `warehouse` is the path of the warehouse for which the
    file was written, to detect a moved or copied warehouse. If `database` is not the configured
    database, the claims do not apply, and the pipeline starts from the beginning.
    """

    warehouse: str
    database: str
    progress: PipelineProgress
    complete: Mapping[str, ClaimedRecord]


def claims_path(warehouse: str, pipeline: str) -> str:
    """Return the path of a pipeline's claims file.

    The file records up to which positions each table is complete.
    """
    return f"{pipeline_folder(warehouse, pipeline)}/progress.json"


def encode_claims(claims: Claims) -> bytes:
    """Return the content of the claims file."""
    body = {
        "version": _VERSION,
        "warehouse": claims.warehouse,
        "database": claims.database,
        "progress": encode_pipeline(claims.progress),
        "complete": {name: asdict(record) for name, record in claims.complete.items()},
    }
    return json.dumps({**body, "sha256": _checksum(body)}, ensure_ascii=False).encode()


def decode_claims(data: bytes, where: str) -> Claims | None:
    """Decode the claims file at `where`.

    Returns None and logs a warning if the file is damaged or has another version. Without the file,
    records are read again, but no row is lost.
    """
    try:
        document = json.loads(data)
        checksum = document.pop("sha256")
        if checksum != _checksum(document) or document["version"] != _VERSION:
            raise ValueError("its checksum or its version is not the expected one")
        return Claims(
            str(document["warehouse"]),
            str(document["database"]),
            decode_pipeline(document["progress"]),
            {
                str(name): ClaimedRecord(
                    str(record["record_id"]),
                    int(record["snapshot_id"]),
                    int(record["rows"]),
                )
                for name, record in document["complete"].items()
            },
        )
    except DAMAGED as error:
        _LOG.warning("claims_ignored", extra={"ctx": {"path": where, "error": repr(error)}})
        return None


def read_claims(io: FileIO, warehouse: str, pipeline: str) -> Claims | None:
    """Return the claims of a pipeline, or None if the file does not exist or cannot be used.

    Logs a warning if the file is damaged or of another version. Raises StorageError if the
    warehouse does not respond.
    """
    path = claims_path(warehouse, pipeline)
    try:
        data = io.read_bytes(path)
    except FileNotFoundError:
        return None
    return decode_claims(data, path)


def _checksum(body: Mapping[str, object]) -> str:
    text = json.dumps(body, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
