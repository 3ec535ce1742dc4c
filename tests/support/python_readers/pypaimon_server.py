"""Answers read requests with pypaimon; runs in an environment of its own, one request a line.

Request: {"warehouse", "table", "snapshot"?, "out"}; the rows go to the file ``out`` as an Arrow
stream, the reply is {"rows": n} or {"error": text}.
"""

from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory  # type: ignore[import-not-found]  # another environment
from requests_loop import serve  # type: ignore[import-not-found]  # beside this program


def read(request: dict[str, Any]) -> pa.Table:
    catalog = CatalogFactory.create({"warehouse": request["warehouse"]})
    table = catalog.get_table(request["table"])
    if request.get("snapshot"):
        table = table.copy({"scan.snapshot-id": str(request["snapshot"])})
    builder = table.new_read_builder()
    rows: pa.Table = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return rows


if __name__ == "__main__":
    serve(read)
