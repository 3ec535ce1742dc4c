"""Files of HDFS appear whole: written under a temporary name, then renamed, never onto another.

Paimon's Java publishes in the same way (HDFS refuses either rename if the name is taken), so
writers of both kinds have one winner for each snapshot. The library sends a request a second time
when its connection breaks, and the answer of the first may be the one that was lost: what an error
means is therefore found out, not believed.
"""

import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from hdfs_native import WriteOptions
from hdfs_native._internal import RawClient

from ingestd.crash_points import Point, reach
from ingestd.paimon.io.hdfs_calls import FAILURES, Hdfs, is_unknown

if TYPE_CHECKING:
    from hdfs_native._internal import RawFileReader, RawFileWriter

Chunks = Callable[[], Iterable[bytes]]
"""The bytes of a file, from the beginning at each call."""


def publish(hdfs: Hdfs, place: str, chunks: Chunks, *, replace: bool = False) -> bool:
    """Make a file whole under its name; False, and nothing changed, if the name is taken.

    A file of that name that holds the very same bytes counts as published. With `replace` there is
    no False. Durable when it returns: datanodes have synced the bytes, the namenode its journal.
    Errors of the library pass: the outcome is not known then.
    """
    directory, _, name = place.rpartition("/")
    temporary = f"{directory}/.{name}.{uuid.uuid4()}.tmp"
    try:
        hdfs.again(lambda: _write(hdfs, temporary, chunks))
        reach(Point.PUBLISH_PREPARED)
        hdfs.once(lambda client: client.rename(temporary, place, replace))
        reach(Point.PUBLISH_LINKED)
    except FAILURES:
        if _settled(hdfs, temporary, place, chunks):
            return True
        if replace or not _is_taken(hdfs, place):
            raise
        return False
    return True


def _write(hdfs: Hdfs, temporary: str, chunks: Chunks) -> None:
    """Write a temporary file again, whatever an earlier try has left of it."""
    options = WriteOptions(overwrite=True, create_parent=True)
    writer = hdfs.once(lambda client: client.create(temporary, options))
    for chunk in chunks():
        hdfs.once(_writing(writer, chunk))
    hdfs.once(lambda _: _synced(writer))
    hdfs.once(lambda _: writer.close())


def _writing(writer: "RawFileWriter", chunk: bytes) -> Callable[[RawClient], int]:
    return lambda _: writer.write(chunk)


def _synced(writer: "RawFileWriter") -> None:
    """Have datanodes sync; a striped file cannot be, its cells lie on many machines instead."""
    try:
        writer.hsync()
    except RuntimeError as error:
        if not is_unknown(error):
            raise


def _settled(hdfs: Hdfs, temporary: str, place: str, chunks: Chunks) -> bool:
    """Whether a file is published in spite of an error.

    Without its source a rename that is still under way cannot happen any more, so the temporary
    file goes first, and what is found then is final.
    """
    hdfs.with_retries(lambda client: client.delete(temporary, False))
    try:
        return hdfs.again(lambda: _holds(hdfs, place, chunks))
    except FileNotFoundError:
        return False


def _is_taken(hdfs: Hdfs, place: str) -> bool:
    try:
        hdfs.with_retries(lambda client: client.get_file_info(place))
    except FileNotFoundError:
        return False
    return True


def _holds(hdfs: Hdfs, place: str, chunks: Chunks) -> bool:
    """Whether a file is what these bytes are; FileNotFoundError if there is none."""
    reader = hdfs.once(lambda client: client.read(place))
    length = reader.file_length()
    at = 0
    for chunk in chunks():
        if at + len(chunk) > length or hdfs.once(_reading(reader, at, len(chunk))) != chunk:
            return False
        at += len(chunk)
    return at == length


def _reading(reader: "RawFileReader", at: int, length: int) -> Callable[[RawClient], bytes]:
    return lambda _: reader.read_range(at, length)
