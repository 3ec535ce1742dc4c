"""Register partitions in a Hive Metastore, for the option `metastore.partitioned-table`."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.hive_client import Metastore, MetastoreSession, NoSuchObjectError
from ingestd.paimon.catalog.hive_tables import HiveTable
from ingestd.paimon.catalog.thrift import boolean, structure, structures, text, texts

_PARTITIONS_AT_ONCE = 1000


class _AddPartitions:
    DATABASE = 1
    TABLE = 2
    PARTITIONS = 3
    IF_NOT_EXISTS = 4
    NEED_RESULT = 5


@dataclass(frozen=True)
class HivePartitions:
    """Registers the partitions of a table in a Hive Metastore.

    `keys` are the partition columns, `directory` is the directory of the table. With
    `in_properties`, the location of a partition is stored as a property, not as its storage
    location. Adding a partition that exists has no effect.
    """

    metastore: Metastore
    identifier: Identifier
    keys: tuple[str, ...]
    directory: str
    in_properties: bool
    _known: set[tuple[str, ...]] = field(default_factory=set, init=False, compare=False)
    _pending: dict[tuple[str, ...], bool] = field(default_factory=dict, init=False, compare=False)
    """Partitions to add (True) or to remove."""
    _done: set[tuple[str, ...]] = field(default_factory=set, init=False, compare=False)

    @property
    def is_new(self) -> bool:
        """Whether no partition is known to be in the metastore, as in a new object.

        The next call of `update` must then report all partitions of the table.
        """
        return not self._known

    def update(self, added: Iterable[tuple[str, ...]], removed: Iterable[tuple[str, ...]]) -> None:
        """Add the partitions `added` to the metastore, and remove the partitions `removed`.

        Each partition is a tuple of values in key order. Partitions that this object has added
        before are not added again. Raises StorageError if the metastore does not respond; the next
        call then repeats the changes.
        """
        self._pending.update({values: True for values in added if values not in self._known})
        self._pending.update(dict.fromkeys(removed, False))
        if not self._pending:
            return
        pending = dict(self._pending)
        with self.metastore.session() as session:
            self._remove(session, [values for values, adds in pending.items() if not adds])
            self._add(session, [values for values, adds in pending.items() if adds])
        for values, adds in pending.items():
            self._pending.pop(values, None)
            (self._known.add if adds else self._known.discard)(values)

    def mark_done(self, done: Iterable[tuple[str, ...]]) -> None:
        """Add a further partition for each done partition, with ".done" after its last value.

        Java names these partitions in the same way. Partitions that this object has added before
        are not added again. Raises StorageError if the metastore does not respond.
        """
        new = {(*values[:-1], f"{values[-1]}.done") for values in done} - self._done
        if new:
            with self.metastore.session() as session:
                self._add(session, sorted(new))
            self._done.update(new)

    def _remove(self, session: MetastoreSession, removed: list[tuple[str, ...]]) -> None:
        for values in removed:
            names = text(self.identifier.database), text(self.identifier.table)
            try:
                session.call("drop_partition", *names, texts(*values), boolean(False))
            except NoSuchObjectError:
                continue  # another process was first

    def _add(self, session: MetastoreSession, added: list[tuple[str, ...]]) -> None:
        if not added:
            return
        database, name = self.identifier.database, self.identifier.table
        table = HiveTable(session.table(database, name))
        for start in range(0, len(added), _PARTITIONS_AT_ONCE):
            partitions = [
                table.partition(
                    dict(zip(self.keys, values, strict=True)),
                    self.directory,
                    int(time.time()),
                    in_properties=self.in_properties,
                )
                for values in added[start : start + _PARTITIONS_AT_ONCE]
            ]
            request = {
                _AddPartitions.DATABASE: text(database),
                _AddPartitions.TABLE: text(name),
                _AddPartitions.PARTITIONS: structures(*partitions),
                _AddPartitions.IF_NOT_EXISTS: boolean(True),
                _AddPartitions.NEED_RESULT: boolean(False),
            }
            session.call("add_partitions_req", structure(request))
