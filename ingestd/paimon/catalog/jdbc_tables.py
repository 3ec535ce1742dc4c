"""The tables of a JDBC catalog in its database, with the definitions of Paimon."""

from ingestd.paimon.catalog.jdbc_database import Database, Session

_KEY = "catalog_key VARCHAR(255) NOT NULL"
_DATABASE = "database_name VARCHAR(255) NOT NULL"
_TABLE = "table_name VARCHAR(255) NOT NULL"
_VALUE = "property_value VARCHAR(1000)"
_DEFINITIONS = {
    "paimon_tables": (
        f"{_KEY}, {_DATABASE}, {_TABLE}, PRIMARY KEY (catalog_key, database_name, table_name)"
    ),
    "paimon_database_properties": (
        f"{_KEY}, {_DATABASE}, property_key VARCHAR(255), {_VALUE}, "
        "PRIMARY KEY (catalog_key, database_name, property_key)"
    ),
    "paimon_table_properties": (
        f"{_KEY}, {_DATABASE}, {_TABLE}, property_key VARCHAR(255) NOT NULL, {_VALUE}, "
        "PRIMARY KEY (catalog_key, database_name, table_name, property_key)"
    ),
}
_LOCKS = "paimon_distributed_locks"


def create_catalog_tables(session: Session, database: Database) -> None:
    """Create the catalog's own tables in `database`, for names and properties, if missing."""
    for name, definition in _DEFINITIONS.items():
        _create(session, database, name, definition)


def create_lock_table(session: Session, database: Database, key_length: int) -> None:
    """Create the catalog's table for locks if it is missing.

    `key_length` is the maximum number of characters of its key, the name of a lock.
    """
    definition = (
        f"lock_id VARCHAR({key_length}) NOT NULL, "
        "acquired_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL, "
        "expire_time_seconds BIGINT DEFAULT 0 NOT NULL, PRIMARY KEY (lock_id)"
    )
    _create(session, database, _LOCKS, definition)


def _create(session: Session, database: Database, name: str, definition: str) -> None:
    # A user without the privilege to create tables may use those that exist.
    if not session.query(database.has_table, [name]):
        suffix = database.table_suffix
        session.execute(f"CREATE TABLE IF NOT EXISTS {name} ({definition}){suffix}")
