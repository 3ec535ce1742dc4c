"""The REST catalog: tables by name over HTTP, with their files in storage.

Specification: https://paimon.apache.org/docs/1.4/concepts/rest/rest-api/

Snapshots are published through the server, which decides between concurrent commits; all other
parts of a table are written and read as files.
"""

import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingestd.errors import ConfigError, SchemaConflictError, StorageError, UnsupportedError
from ingestd.paimon.catalog.base import (
    CASE_SENSITIVE,
    Identifier,
    TableExistsError,
    TableNotFoundError,
    check_empty,
    check_name,
    nearest_name_hint,
    refuse_branch,
)
from ingestd.paimon.catalog.rest_auth import (
    DLF,
    TOKEN,
    TOKEN_FILE,
    TOKEN_PROVIDER,
    bearer_token,
)
from ingestd.paimon.catalog.rest_dlf import DLF_OPTIONS, dlf_signer
from ingestd.paimon.catalog.rest_http import NotFoundError, RestClient, RestResponse, base_uri
from ingestd.paimon.catalog.rest_messages import (
    StorageToken,
    change_document,
    commit_document,
    rollback_document,
    schema_document,
    schema_of,
    token_of,
)
from ingestd.paimon.catalog.rest_token import TableCredentials
from ingestd.paimon.io.file_io import (
    absolute_path,
    file_io_for,
    is_local,
    scheme_of,
    storage_options,
)
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import SchemaChange
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.catalog_commit import PartitionChange
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot_id

_DATA_TOKEN = "data-token.enabled"  # noqa: S105  (the name of an option)
_OPTIONS = DLF_OPTIONS | {"uri", "warehouse", TOKEN, TOKEN_FILE, TOKEN_PROVIDER, _DATA_TOKEN}
_HEADER = "header."


def open_catalog(warehouse: str, options: Mapping[str, str]) -> "RestCatalog":
    """Return the catalog of a server, after requesting its configuration.

    Options: `uri`; `token` or `token-file`, `token.provider`; those of the provider `dlf`;
    `header.NAME`; `warehouse`, the name of the warehouse on the server (default: the argument
    `warehouse`); `data-token.enabled`, which the server may set, too; and the options of the
    tables' store. Raises ConfigError for any other option and for an unknown warehouse,
    UnsupportedError if the server requires `case-sensitive` = false, and StorageError if the server
    does not respond.
    """
    known = {name for name in options if name in _OPTIONS or name.startswith(_HEADER)}
    store = storage_options(options)
    unknown = sorted(set(options) - known - store.keys())
    if unknown:
        raise ConfigError(f"the REST catalog has no option {', '.join(unknown)}")
    if not options.get("uri"):
        raise ConfigError("the REST catalog needs the option 'uri': the address of its server")
    uri = base_uri(options["uri"])
    is_signed = options.get(TOKEN_PROVIDER) == DLF
    proof = dlf_signer(options, uri) if is_signed else bearer_token(options)
    client = RestClient(uri, proof, _headers(options))
    name = options.get("warehouse", warehouse)
    response = client.get("/v1/config", {"warehouse": name})
    if response.missing_resource is not None:
        raise ConfigError(f"catalog {client.uri} has no warehouse '{name}': {response.message}")
    merged = {
        **response.members("defaults"),
        **options,
        **response.members("overrides"),
    }
    if str(merged.get(CASE_SENSITIVE, "true")).lower() == "false":
        raise UnsupportedError(f"catalog {client.uri} wants '{CASE_SENSITIVE}' = 'false'")
    settled = RestClient(client.uri, client.token, _headers(merged))
    has_tokens = str(merged.get(_DATA_TOKEN, "false")).lower() == "true"
    given = (warehouse, frozenset(options.items())) if has_tokens else None
    return RestCatalog(settled, name, str(merged.get("prefix") or ""), store, given)


@dataclass(frozen=True)
class RestCatalog:
    """A catalog whose server keeps the names, schemas and snapshots of tables.

    `warehouse` is the name of the warehouse on the server. `prefix`, which the server defines, is
    part of all request paths. `store` has the options of the store that contains the files of the
    tables. `opened_with` are the arguments of `open_catalog`, by which the store of each table gets
    credentials from the server (None: the server hands out none). Methods raise StorageError if the
    server does not respond, ConfigError if it rejects a request.
    """

    client: RestClient
    warehouse: str
    prefix: str = ""
    store: Mapping[str, str] = field(default_factory=dict, repr=False)
    opened_with: tuple[str, frozenset[tuple[str, str]]] | None = field(default=None, repr=False)

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        return sorted(self.client.pages(self._at("databases"), "databases"))

    def create_database(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a database if it does not exist; an existing database keeps its properties.

        Raises ConfigError for a name that is not allowed, and if the server lacks a resource that
        is required (status 404), such as the warehouse.
        """
        check_name("database", name)
        document = {"name": name, "options": dict(properties or {})}
        response = self.client.post(self._at("databases"), document)
        if response.missing_resource is not None:
            raise ConfigError(f"database '{name}' cannot be created: {response.message}")

    def database_properties(self, name: str) -> Mapping[str, str]:
        """Return the properties of a database.

        Raises TableNotFoundError if the database does not exist.
        """
        response = self.client.get(self._database(name))
        if response.missing_resource is not None:
            raise self._no_database(name)
        return {str(k): str(v) for k, v in response.members("options").items()}

    def drop_database(self, name: str, *, cascade: bool = False) -> None:
        """Delete a database, and with `cascade` its tables.

        Raises TableNotFoundError if it does not exist, DatabaseNotEmptyError if it has tables and
        `cascade` is false.
        """
        tables = self.list_tables(name)
        check_empty(name, tables, cascade=cascade)
        if self.client.delete(self._database(name)).missing_resource is not None:
            raise self._no_database(name)

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted.

        Raises TableNotFoundError if the database does not exist.
        """
        check_name("database", database)
        try:
            return sorted(self.client.pages(f"{self._database(database)}/tables", "tables"))
        except NotFoundError as error:
            raise self._no_database(database) from error

    def table_exists(self, identifier: Identifier) -> bool:
        """Return whether the table exists."""
        return self.client.get(self._table(identifier)).missing_resource is None

    def get_table(self, identifier: Identifier) -> FileStoreTable:
        """Return the table with its newest schema.

        Raises TableNotFoundError, which suggests the most similar name, if the table does not
        exist; UnsupportedError if the server does not report its path; FormatError if the schema in
        the response is invalid.
        """
        response = self.client.get(self._table(identifier))
        if response.missing_resource is not None:
            hint = nearest_name_hint(identifier.table, self.list_tables(identifier.database))
            message = f"no table '{identifier.table}' in database '{identifier.database}'{hint}"
            raise TableNotFoundError(message)
        return self._opened(identifier, response)

    def storage_token(self, identifier: Identifier, *, retries: int) -> StorageToken:
        """Return credentials of a table's store; ask a busy server again up to `retries` times.

        Raises TableNotFoundError if the table does not exist, ConfigError if the server refuses,
        and StorageError if it does not respond, or responds without credentials.
        """
        client = replace(self.client, retries=retries)
        response = client.get(f"{self._table(identifier)}/token")
        if response.missing_resource is not None:
            raise TableNotFoundError(f"no table '{identifier}' in {self.warehouse}")
        return token_of(response.document, f"catalog {client.uri}: token of table {identifier}")

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False
    ) -> FileStoreTable:
        """Create a table, and its database if it does not exist.

        If the table exists, raises TableExistsError or, with `ignore_if_exists`, returns it; the
        server decides which of several concurrent calls creates it. Raises ValueError if the id of
        the schema is not 0, ConfigError for a branch or a name that is not allowed, and
        TableNotFoundError if the server lacks a resource that is required.
        """
        refuse_branch(identifier)
        if schema.id != 0:
            raise ValueError(f"the first schema of a table has id 0, not {schema.id}")
        path = f"{self._database(identifier.database)}/tables"
        document = {"identifier": _name(identifier), "schema": schema_document(schema)}
        response = self.client.post(path, document)
        if response.missing_resource is not None:
            self.create_database(identifier.database)
            response = self.client.post(path, document)
        if response.missing_resource is not None:
            raise TableNotFoundError(f"table '{identifier}': {response.message}")
        if response.exists and not ignore_if_exists:
            raise TableExistsError(f"table '{identifier}' exists already in {self.warehouse}")
        return self.get_table(identifier)

    def alter_table(
        self, identifier: Identifier, changes: Sequence[SchemaChange], now_ms: int
    ) -> FileStoreTable:
        """Publish one new schema with the changes through the server; return the table.

        Without changes, no schema is published. `now_ms` is the time of the new schema, in
        milliseconds since 1970. Raises TableNotFoundError if the table does not exist,
        SchemaConflictError if it does not allow the changes, and ConfigError or UnsupportedError
        for a name or option that is not allowed.
        """
        table = self.get_table(identifier)
        if not changes:
            return table
        newest = latest_snapshot_id(table.io, table.paths)
        apply_changes(table.schema, changes, now_ms, has_snapshots=newest is not None)
        document = {"changes": [change_document(change) for change in changes]}
        response = self.client.post(self._table(identifier), document)
        if response.missing_resource is not None or response.exists:
            raise SchemaConflictError(f"table '{identifier}': {response.message}")
        return self.get_table(identifier)

    def drop_table(self, identifier: Identifier) -> None:
        """Delete a table through the server. Raises TableNotFoundError if it does not exist."""
        response = self.client.delete(self._table(identifier))
        if response.missing_resource is not None:
            raise TableNotFoundError(f"no table '{identifier}' in {self.warehouse}")

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table, whose writers must be stopped.

        Raises TableNotFoundError if the table does not exist, TableExistsError if the new name is
        in use, ConfigError if it names a branch or the server rejects it.
        """
        refuse_branch(target)
        document = {"source": _name(source), "destination": _name(target)}
        try:
            response = self.client.post(self._at("tables", "rename"), document)
        except StorageError:
            if self.table_exists(source) or not self.table_exists(target):
                raise
            return
        if response.missing_resource is not None:
            raise TableNotFoundError(f"table '{source}' cannot be renamed: {response.message}")
        if response.exists:
            raise TableExistsError(f"table '{target}' exists already in {self.warehouse}")

    def commit_snapshot(
        self, identifier: Identifier, branch: str, table_id: str, snapshot: Snapshot,
        changes: Iterable[PartitionChange],
    ) -> bool:  # fmt: skip
        """Publish a snapshot of a branch through the server; return False if its id is in use.

        `table_id` is the server's id of the table, `changes` are the changes of the partitions.
        Raises StorageError if the server did not respond, after which the outcome is unknown, and
        TableNotFoundError if the table was dropped.
        """
        path = f"{self._line(identifier, branch)}/commit"
        response = self.client.post(path, commit_document(table_id, snapshot, changes))
        if response.missing_resource is not None:
            raise TableNotFoundError(f"table '{identifier}' was dropped: {response.message}")
        return bool(response.document.get("success", False))

    def roll_back(
        self, identifier: Identifier, branch: str, snapshot_id: int, tag: str | None
    ) -> None:
        """Roll a branch back through the server to a snapshot.

        This is the snapshot of `tag`, or if `tag` is None, the one with the id `snapshot_id`.
        Raises ConfigError if the server does not have the snapshot, and StorageError if it did not
        respond, after which the outcome is unknown.
        """
        document = rollback_document(snapshot_id, tag)
        response = self.client.post(f"{self._line(identifier, branch)}/rollback", document)
        if response.missing_resource is not None:
            raise ConfigError(
                f"table '{identifier}' cannot go back to snapshot {snapshot_id}: catalog "
                f"{self.client.uri} doesn't have it ({response.message})"
            )

    def _opened(self, identifier: Identifier, response: RestResponse) -> FileStoreTable:
        source = f"table {identifier} of catalog {self.client.uri}"
        path = response.document.get("path")
        if not path:
            raise UnsupportedError(f"{source} has no path: the server keeps its files to itself")
        credentials = self.opened_with and TableCredentials(
            *self.opened_with, identifier, scheme_of(str(path))
        )
        io = file_io_for(str(path), {} if is_local(str(path)) else self.store, credentials)
        table_id = str(response.document.get("id") or "")
        is_external = response.document.get("isExternal") is True
        return FileStoreTable(
            absolute_path(str(path)),
            schema_of(response.document, source),
            io,
            str(identifier),
            snapshot_commit=None if is_external else ServerCommit(self, identifier, table_id),
        )

    def _no_database(self, name: str) -> TableNotFoundError:
        hint = nearest_name_hint(name, self.list_databases())
        return TableNotFoundError(f"no database '{name}' in {self.warehouse}{hint}")

    def _at(self, *parts: str) -> str:
        return "/".join(["/v1", *map(_quoted, filter(None, [self.prefix, *parts]))])

    def _database(self, name: str) -> str:
        return self._at("databases", name)

    def _table(self, identifier: Identifier) -> str:
        return self._at("databases", identifier.database, "tables", identifier.table)

    def _line(self, identifier: Identifier, branch: str) -> str:
        suffix = "" if branch == MAIN_BRANCH else f"$branch_{branch}"
        return f"{self._table(identifier)}{_quoted(suffix)}"


@dataclass(frozen=True, slots=True)
class ServerCommit:
    """Publishes the snapshots of a table through the server of a REST catalog.

    `table_id` distinguishes the table from a later table of the same name.
    """

    catalog: RestCatalog
    identifier: Identifier
    table_id: str

    def commit(self, branch: str, snapshot: Snapshot, changes: Iterable[PartitionChange]) -> bool:
        """Publish a snapshot of a branch; return False if its id belongs to another commit.

        `changes` are the changes of the partitions by the snapshot. Raises StorageError if the
        server did not respond, after which the outcome is unknown, and TableNotFoundError if the
        table was dropped.
        """
        return self.catalog.commit_snapshot(
            self.identifier, branch, self.table_id, snapshot, changes
        )

    def rollback(self, branch: str, snapshot_id: int, tag: str | None) -> None:
        """Delete the snapshots of a branch after the snapshot with the id `snapshot_id`.

        `tag` is the name of a tag of this snapshot if the snapshot exists only as a tag, else None.
        Raises ConfigError if the server does not have the snapshot, and StorageError if it did not
        respond, after which the outcome is unknown.
        """
        self.catalog.roll_back(self.identifier, branch, snapshot_id, tag)


def _headers(options: Mapping[str, str]) -> dict[str, str]:
    return {k.removeprefix(_HEADER): v for k, v in options.items() if k.startswith(_HEADER)}


def _name(identifier: Identifier) -> dict[str, str]:
    return {"database": identifier.database, "object": identifier.table}


def _quoted(text: str) -> str:
    return urllib.parse.quote_plus(text, safe="")
