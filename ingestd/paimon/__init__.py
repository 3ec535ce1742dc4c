"""The Paimon table format: a library independent of Kafka, change data capture and Spark.

    import ingestd.paimon as paimon

    orders = paimon.open("warehouse/shop.orders")
    orders.to_arrow(columns=["id", "amount"], where="amount > 10")
    orders.scan(snapshot=3).to_polars()
    orders.write([{"id": 1, "status": "new", "amount": 12}])

The names in `__all__` are the stable interface; the packages below are its implementation. Each
name is loaded at its first use, so that processes of the daemon, which import single packages, do
not load all of them.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingestd.paimon.library.open_table import Table as Table
    from ingestd.paimon.library.scan import Scan as Scan
    from ingestd.paimon.library.warehouse import Warehouse as Warehouse
    from ingestd.paimon.library.warehouse import create_table as create
    from ingestd.paimon.library.warehouse import open_table as open
    from ingestd.paimon.library.warehouse import open_warehouse as open_warehouse
    from ingestd.paimon.library.writer import Writer as Writer
else:
    _HOMES = {
        "Scan": "scan.Scan",
        "Table": "open_table.Table",
        "Warehouse": "warehouse.Warehouse",
        "Writer": "writer.Writer",
        "create": "warehouse.create_table",
        "open": "warehouse.open_table",
        "open_warehouse": "warehouse.open_warehouse",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'ingestd.paimon' has no attribute '{name}'")
        module, _, inside = _HOMES[name].partition(".")
        return getattr(importlib.import_module(f"ingestd.paimon.library.{module}"), inside)

    def __dir__() -> list[str]:
        return [*_HOMES]


__all__ = (
    "Scan",
    "Table",
    "Warehouse",
    "Writer",
    "create",
    "open",
    "open_warehouse",
)
