"""Answers read requests with pyiceberg; runs in an environment of its own, one request a line.

Request: {"folder" or "catalog" with "name", "tag"?, "filter"?, "out"}; the rows of the table that
the hint in the folder's metadata leads to, or that a REST catalog with these settings has, go to
the file ``out`` as an Arrow stream, the reply is {"rows": n} or {"error": text}.
"""

from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog  # type: ignore[import-not-found]
from pyiceberg.table import StaticTable  # type: ignore[import-not-found]  # another environment
from requests_loop import serve  # type: ignore[import-not-found]  # beside this program


def read(request: dict[str, Any]) -> pa.Table:
    if "catalog" in request:
        table = load_catalog("rest", type="rest", **request["catalog"]).load_table(request["name"])
    else:
        table = StaticTable.from_metadata(request["folder"])
    scan = table.scan(row_filter=request.get("filter") or "True")
    if request.get("tag"):
        scan = scan.use_ref(request["tag"])
    rows: pa.Table = scan.to_arrow()
    return rows


if __name__ == "__main__":
    serve(read)
