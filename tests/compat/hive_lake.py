"""A warehouse with a database of its own in a Hive Metastore, for ingestd and for Java Paimon."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.catalog.hive import HiveCatalog
from ingestd.paimon.catalog.hive_client import METHODS, MetastoreError
from ingestd.paimon.catalog.thrift import Kind, Value, structure, text
from tests.compat.hive_metastore import HiveMetastore
from tests.support.oracle import Oracle

NO_OPTIONS: Mapping[str, str] = {}
PARAMETERS, COLUMNS = 9, 1


@dataclass(frozen=True)
class Lake:
    """A warehouse with a database of its own in the metastore, for ingestd and for Java."""

    warehouse: Path
    database: str
    metastore: HiveMetastore
    judge: Oracle

    def catalog(self, options: Mapping[str, str] = NO_OPTIONS) -> HiveCatalog:
        fixed = {"uri": self.metastore.uri}
        catalog = load_catalog("hive", str(self.warehouse), {**fixed, **options})
        assert isinstance(catalog, HiveCatalog)
        return catalog

    def table(self, name: str = "t") -> Identifier:
        return Identifier(self.database, name)

    def java(self, options: Mapping[str, str] = NO_OPTIONS) -> str:
        """The catalog's options for a command of the judge."""
        fixed = {
            "metastore": "hive",
            "uri": self.metastore.uri,
            "warehouse": str(self.warehouse),
            "cache-enabled": "false",
        }
        return json.dumps({**fixed, **options})

    def java_spec(
        self, scratch: Path, catalog: Mapping[str, str] = NO_OPTIONS, **spec: object
    ) -> None:
        document = {"database": self.database, "table": "t", **spec}
        self.judge.write_spec(document, self.java(catalog), scratch)

    def java_rows(self, name: str = "t") -> list[dict[str, object]]:
        return self.judge.read(self.java(), self.database, name)

    def java_tables(self) -> list[str]:
        names = self.judge("tables", self.java())
        return [name for name in names if name.startswith(f"{self.database}.")]

    def stored(self, name: str = "t") -> Mapping[int, Value]:
        """The table as the metastore stores it."""
        request = structure({1: text(self.database), 2: text(name)})
        stored: Mapping[int, Value] = (
            self.catalog().options.metastore.call("get_table_req", request)[1].content
        )
        return stored

    def stored_columns(self, name: str = "t") -> list[tuple[str, ...]]:
        """Name, type and comment of each column in the metastore."""
        columns = self.stored(name)[7].content[COLUMNS].content.contents
        return [tuple(column[number].content for number in sorted(column)) for column in columns]

    def stored_properties(self, name: str = "t") -> dict[str, str]:
        """The properties in the metastore, except those that it computes."""
        computed = ("totalSize", "numFiles", "transient_lastDdlTime")
        properties: Mapping[str, str] = self.stored(name)[PARAMETERS].content.contents
        return {key: value for key, value in properties.items() if key not in computed}

    def partitions(self, name: str = "t") -> dict[str, tuple[str, ...]]:
        """The values of each partition in the metastore, by its directory below the table."""
        names = text(self.database), text(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(METHODS, "get_partitions", (MetastoreError, MetastoreError))
            partitions = self.catalog().options.metastore.call(
                "get_partitions", *names, Value(Kind.I16, -1)
            )
        location = self.stored(name)[7].content[2].content
        return {
            fields[6].content[2].content.removeprefix(f"{location}/"): fields[1].content.contents
            for fields in partitions.contents
        }
