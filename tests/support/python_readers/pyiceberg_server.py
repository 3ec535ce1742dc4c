"""Answers read requests with pyiceberg; runs in an environment of its own, one request a line.

Request: {"folder", "tag"?, "filter"?, "out"}; the rows of the table that the hint in the folder's
metadata leads to go to the file ``out`` as an Arrow stream, the reply is {"rows": n} or
{"error": text}.
"""

import json
import sys
import traceback
from typing import Any

import pyarrow as pa
from pyiceberg.table import StaticTable  # type: ignore[import-not-found]  # another environment


def read(request: dict[str, Any]) -> dict[str, Any]:
    table = StaticTable.from_metadata(request["folder"])
    scan = table.scan(row_filter=request.get("filter") or "True")
    if request.get("tag"):
        scan = scan.use_ref(request["tag"])
    rows = scan.to_arrow()
    with pa.OSFile(request["out"], "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return {"rows": rows.num_rows}


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        try:
            reply = read(json.loads(line))
        except BaseException:  # noqa: BLE001 - whatever broke is the answer
            reply = {"error": traceback.format_exc()}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
