"""The entry of a table in an Iceberg REST catalog, which readers open by its name.

The metadata in the warehouse decides: a table of the catalog that cannot be brought to it by
updates is dropped, without its files, and created again, as Paimon's IcebergRestMetadataCommitter
does. A table that Paimon did not write is never touched.

Specification: https://iceberg.apache.org/rest-catalog-spec/
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from ingestd.errors import ConfigError, StorageError
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.rest_auth import BearerToken, bearer_token
from ingestd.paimon.catalog.rest_http import RestClient, base_uri
from ingestd.paimon.iceberg.iceberg_types import Json
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.iceberg.rest_updates import creation_updates, next_updates
from ingestd.paimon.iceberg.table_metadata import is_same_path
from ingestd.paimon.spec import iceberg_options
from ingestd.paimon.spec.option_types import Options
from ingestd.paimon.spec.table_schema import TableSchema

_ATTEMPTS = 3
_TIMEOUT_SECONDS = 10.0
_HEADER = "header."


@dataclass(frozen=True, slots=True)
class RestEntry:
    """The entry of an Iceberg table in a REST catalog, by default with the table's name.

    `settings` are the settings of the catalog, by their names in Iceberg; `token` authenticates the
    requests. A request that fails is not repeated, because the next commit catches up.
    """

    identifier: Identifier
    settings: Mapping[str, str] = field(repr=False)
    token: BearerToken
    _opened: list[tuple[RestClient, str]] = field(default_factory=list, repr=False)

    def point_to(self, store: MetadataStore, version: int, schema: TableSchema) -> None:
        """Update the catalog's table to the metadata document of a version, which `store` has.

        The table and its namespace are created if they do not exist. Raises ConfigError if the name
        belongs to a table that Paimon did not write, StorageError if the catalog does not respond,
        FileNotFoundError if another process has replaced the document.
        """
        document = store.read(version)
        try:
            self._follow(store, version, document, schema)
        except (LookupError, TypeError, AttributeError) as error:
            raise StorageError(
                f"catalog {self.settings['uri']}: the response about {self.identifier} is not that "
                f"of an Iceberg REST catalog: {error!r}"
            ) from error

    def _follow(
        self, store: MetadataStore, version: int, document: Json, schema: TableSchema
    ) -> None:
        client, prefix = self._open()
        for _ in range(_ATTEMPTS):
            found = client.get(f"{prefix}/{self._table}")
            if found.missing_resource is not None:
                if self._create(client, prefix, document, schema):
                    return
                continue
            known = found.members("metadata")
            self._refuse_other(known, store.folder)
            updates = next_updates(known, document)
            if updates is None and store.newest_version() != version:
                return  # the catalog may have a later version, to which the caller turns next
            if updates is None:
                client.delete(f"{prefix}/{self._table}?purgeRequested=false")
            elif not updates or self._commit(client, prefix, _requirements(known), updates):
                return
        raise StorageError(
            f"catalog {client.uri}: {self.identifier} was changed by others in all {_ATTEMPTS} "
            "attempts; the next commit tries again"
        )

    @property
    def _namespace(self) -> str:
        return f"namespaces/{quote(self.identifier.database, safe='')}"

    @property
    def _table(self) -> str:
        return f"{self._namespace}/tables/{quote(self.identifier.table, safe='')}"

    def _open(self) -> tuple[RestClient, str]:
        """Return the client, and the path before all others; the configuration is read once."""
        if not self._opened:
            client = self._client(self.settings)
            query = {"warehouse": self.settings.get("warehouse", "")}
            response = client.get("/v1/config", query if query["warehouse"] else None)
            if response.missing_resource is not None:
                raise ConfigError(
                    f"catalog {client.uri} has no warehouse '{query['warehouse']}': "
                    f"{response.message}"
                )
            merged = {
                **response.members("defaults"),
                **self.settings,
                **response.members("overrides"),
            }
            prefix = str(merged.get("prefix") or "")
            self._opened.append((self._client(merged), f"/v1/{prefix}".rstrip("/")))
        return self._opened[0]

    def _client(self, settings: Mapping[str, str]) -> RestClient:
        headers = {k.removeprefix(_HEADER): v for k, v in settings.items() if k.startswith(_HEADER)}
        uri = base_uri(settings["uri"])
        return RestClient(uri, self.token, headers, retries=0, timeout_seconds=_TIMEOUT_SECONDS)

    def _create(self, client: RestClient, prefix: str, document: Json, schema: TableSchema) -> bool:
        """Create the table; return False if another process was first.

        It appears with its rows: the catalog first names a location, then takes all updates.
        """
        if client.get(f"{prefix}/{self._namespace}").missing_resource is not None:
            namespace = {"namespace": [self.identifier.database], "properties": {}}
            client.post(f"{prefix}/namespaces", namespace)  # one that exists meanwhile is fine
        empty = {"type": "struct", "schema-id": 0, "fields": []}
        request = {"name": self.identifier.table, "schema": empty, "stage-create": True}
        staged = client.post(f"{prefix}/{self._namespace}/tables", request)
        if staged.exists or staged.missing_resource is not None:
            return False
        metadata = staged.members("metadata")
        updates = creation_updates(
            document, metadata["location"], metadata["table-uuid"], _properties(schema.options)
        )
        return self._commit(client, prefix, [{"type": "assert-create"}], updates)

    def _commit(
        self,
        client: RestClient,
        prefix: str,
        requirements: Sequence[Json],
        updates: Sequence[Json],
    ) -> bool:
        """Send updates; return False if the table does not meet the requirements any more."""
        identifier = {"namespace": [self.identifier.database], "name": self.identifier.table}
        request = {"identifier": identifier, "requirements": requirements, "updates": updates}
        response = client.post(f"{prefix}/{self._table}", request)
        return not response.exists and response.missing_resource is None

    def _refuse_other(self, known: Json, folder: str) -> None:
        """Raise ConfigError for a table whose snapshots are not in the folder `folder`."""
        snapshots = known.get("snapshots") or ()
        lists = {entry.get("manifest-list", "").rpartition("/")[0] for entry in snapshots}
        columns = [column for schema in known["schemas"] for column in schema["fields"]]
        ours = any(is_same_path(path, folder) for path in lists) if lists else not columns
        if not ours:
            raise ConfigError(
                f"catalog {self.settings['uri']} has another table {self.identifier}, which was "
                f"not made from {folder}: drop it there, or set "
                f"'{iceberg_options.ICEBERG_DATABASE.name}' or "
                f"'{iceberg_options.ICEBERG_TABLE.name}' to a name of its own"
            )


def rest_entry(options: Options, identifier: Identifier) -> RestEntry:
    """Return the entry that the options of a table request.

    Raises ConfigError for invalid settings of the token or of the address.
    """
    settings = iceberg_options.rest_settings(options)
    base_uri(settings.get("uri", ""))
    return RestEntry(identifier, settings, bearer_token(settings))


def _requirements(known: Json) -> list[Json]:
    main = (known.get("refs") or {}).get("main") or {}
    snapshot_id = main.get("snapshot-id")
    return [
        {"type": "assert-table-uuid", "uuid": known["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": snapshot_id},
        {"type": "assert-current-schema-id", "current-schema-id": known["current-schema-id"]},
    ]


def _properties(options: Options) -> dict[str, str]:
    """Return the properties of a new table: those of Java, and one that protects Paimon's files."""
    deletes = iceberg_options.ICEBERG_DELETE_OLD.of(options)
    return {
        "write.metadata.previous-versions-max": str(
            iceberg_options.ICEBERG_PREVIOUS_VERSIONS.of(options)
        ),
        "write.metadata.delete-after-commit.enabled": str(deletes).lower(),
        "gc.enabled": "false",
    }
