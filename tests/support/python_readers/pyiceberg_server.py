"""Answers read requests with pyiceberg; runs in an environment of its own, one request a line.

Request: {"folder", "tag"?, "filter"?, "out"}; the rows of the table that the hint in the folder's
metadata leads to go to the file ``out`` as an Arrow stream, the reply is {"rows": n} or
{"error": text}.
"""

from typing import Any

import pyarrow as pa
from pyiceberg.table import StaticTable  # type: ignore[import-not-found]  # another environment
from requests_loop import serve  # type: ignore[import-not-found]  # beside this program


def read(request: dict[str, Any]) -> pa.Table:
    table = StaticTable.from_metadata(request["folder"])
    scan = table.scan(row_filter=request.get("filter") or "True")
    if request.get("tag"):
        scan = scan.use_ref(request["tag"])
    rows: pa.Table = scan.to_arrow()
    return rows


if __name__ == "__main__":
    serve(read)
