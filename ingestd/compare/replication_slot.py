"""The progress of a connector of PostgreSQL: the confirmed position of its replication slot."""

from dataclasses import dataclass

from ingestd.compare import postgres
from ingestd.compare.catch_up import ConnectorState
from ingestd.compare.dialect import Connection
from ingestd.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ReplicationSlot:
    """The replication slot of a connector in PostgreSQL.

    If `name` is None, it is the only logical slot of the database.
    """

    connection: Connection
    name: str | None

    def source_position(self) -> str:
        """Return the current end of the write-ahead log, as a log sequence number in text."""
        [(position,)] = self.connection.query(postgres.POSITION)
        return str(position)

    def state_at(self, position: str) -> ConnectorState | None:
        """Return the state of the slot; None if `name` is None and no slot is visible.

        The slot has passed `position`, a log sequence number such as "0/16B3748", if the position
        that it has confirmed is at or after `position`. Raises ConfigError if the slot `name` does
        not exist, or if `name` is None and there are several slots.
        """
        rows = self.connection.query(postgres.SLOTS, (position,))
        slots = {name: ConnectorState(*state) for name, *state in rows}
        names = ", ".join(sorted(slots)) or "none"
        if self.name is not None:
            if self.name not in slots:
                raise ConfigError(f"the source has no slot {self.name}; its logical slots: {names}")
            return slots[self.name]
        if len(slots) > 1:
            raise ConfigError(f"the source has several slots, name one by --slot: {names}")
        return next(iter(slots.values()), None)
