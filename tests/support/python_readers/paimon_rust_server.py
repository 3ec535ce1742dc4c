"""Answers read requests with paimon-rust; runs in an environment of its own, one request a line.

Requests and replies are those of ``pypaimon_server.py``.
"""

from typing import Any

import pyarrow as pa
from pypaimon_rust.datafusion import PaimonCatalog  # type: ignore[import-not-found]  # another environment
from requests_loop import serve  # type: ignore[import-not-found]  # beside this program


def read(request: dict[str, Any]) -> pa.Table:
    catalog = PaimonCatalog({"warehouse": request["warehouse"]})
    builder = catalog.get_table(request["table"]).new_read_builder()
    batches = builder.new_read().read(builder.new_scan().plan().splits())
    rows: pa.Table = pa.Table.from_batches(batches) if batches else pa.table({})
    return rows


if __name__ == "__main__":
    serve(read)
