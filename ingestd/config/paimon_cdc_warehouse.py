"""Imports `--warehouse` and `--catalog_conf` of Paimon's CDC actions as the section `warehouse`."""

import re
from collections.abc import Mapping

from ingestd.config.import_notes import ImportNotes, Piece
from ingestd.errors import IngestdError
from ingestd.log import is_secret_name
from ingestd.paimon.catalog.base import CASE_SENSITIVE, METASTORES
from ingestd.paimon.io.file_io import file_io_for
from ingestd.paimon.io.store_options import is_storage_option

_SECTION = "warehouse"
_METASTORE = "metastore"
_OF_REST = {"uri": "uri", "token": "token"}
_SCHEME = re.compile(r"^[A-Za-z][\w+.-]*:(?://[^/]*)?")
_FOLDER = "/var/lib/ingestd"
"""Where ingestd keeps files of its own if a server says where tables are."""


def carry_warehouse(
    warehouse: str, database: str, conf: Mapping[str, str], *, keep_secrets: bool
) -> ImportNotes:
    """Return the pieces of the section, from the path and `--catalog_conf` by name."""
    found = _Warehouse(conf, keep_secrets=keep_secrets)
    found.place(warehouse)
    found.carried.take(f"--database {database}", (_SECTION, "database"), database)
    found.options()
    return found.carried


class _Warehouse:
    """Imports the section `warehouse`."""

    def __init__(self, conf: Mapping[str, str], *, keep_secrets: bool) -> None:
        self.carried = ImportNotes()
        self._conf = conf
        self._keep_secrets = keep_secrets
        self._kind = conf.get(_METASTORE, "filesystem").lower()

    def place(self, warehouse: str) -> None:
        """Import the path, and the metastore with its keys."""
        argument = f"--warehouse {warehouse}"
        if self._kind == "rest":
            catalog = (_SECTION, "catalog")
            given = {key: name for name, key in _OF_REST.items() if name in self._conf}
            piece = Piece(
                argument,
                {
                    (*catalog, _METASTORE): "rest",
                    (*catalog, "warehouse"): warehouse,
                    **{(*catalog, key): self._value(name) for key, name in given.items()},
                },
            )
            self.carried.pieces.append(piece)
            self._take_path(argument, _FOLDER)
            return
        try:
            file_io_for(warehouse)
        except IngestdError as error:
            text = error.message.removeprefix(f"warehouse {warehouse}: ")
            self.carried.leave(argument, text, essential=True)
            warehouse = _SCHEME.sub("", warehouse) or "/"
        self._take_path(argument, warehouse)
        if self._kind not in METASTORES:
            text = (
                f"is not supported: the tables lie in the warehouse, but {self._kind} is not told"
            )
            self.carried.leave(self._argument(_METASTORE), text, essential=True)

    def options(self) -> None:
        """Import the remaining catalog options."""
        for name, value in self._conf.items():
            argument = self._argument(name)
            if name == _METASTORE or (self._kind == "rest" and name in _OF_REST):
                continue
            if name == "token.provider" and value == "bear":
                continue
            if is_storage_option(name):
                self.carried.take(argument, (_SECTION, "options", name), self._value(name))
            elif name == CASE_SENSITIVE:
                self.carried.take(argument, (_SECTION, "catalog", CASE_SENSITIVE), value)
            else:
                self.carried.leave(argument, "belongs to Paimon's Java catalogs")

    def _take_path(self, argument: str, path: str) -> None:
        self.carried.pieces.append(Piece(argument, {(_SECTION, "path"): path}, needed=True))

    def _argument(self, name: str) -> str:
        shown = "..." if is_secret_name(name) else self._conf[name]
        return f"--catalog_conf {name}={shown}"

    def _value(self, name: str) -> str:
        """Return a value; for a secret, a reference to an environment variable."""
        value = self._conf[name]
        if self._keep_secrets or not is_secret_name(name) or value.startswith("${"):
            return value
        variable = re.sub(r"\W+", "_", name).upper()
        text = f"the value is not repeated here; put it into {variable}"
        self.carried.leave(self._argument(name), text)
        return f"${{env:{variable}}}"
