"""Deleting the files of a write that will not be committed; nothing refers to them."""

from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.table.commit_message import CommitMessage
from ingestd.paimon.table.data_files import data_file_path
from ingestd.paimon.table.file_store_table import FileStoreTable


def delete_files(table: FileStoreTable, message: CommitMessage) -> None:
    """Delete what a message names as new; a file that is gone already is fine."""
    values = deserialize_row(table.partition_types, message.partition)
    for file in (*message.new_files, *message.changelog_files, *message.compact_after):
        path = data_file_path(table, values, message.bucket, file.file_name)
        table.io.delete_quietly(path)
    for entry in message.new_index_files:
        table.io.delete_quietly(table.paths.index(entry.file_name))
