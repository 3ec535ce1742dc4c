"""Answers read requests with pypaimon; runs in an environment of its own, one request a line.

Request: {"warehouse", "table", "snapshot"?, "out"}; the rows go to the file ``out`` as an Arrow
stream, the reply is {"rows": n} or {"error": text}.
"""

import json
import sys
import traceback
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory  # type: ignore[import-not-found]  # another environment


def read(request: dict[str, Any]) -> dict[str, Any]:
    catalog = CatalogFactory.create({"warehouse": request["warehouse"]})
    table = catalog.get_table(request["table"])
    if request.get("snapshot"):
        table = table.copy({"scan.snapshot-id": str(request["snapshot"])})
    builder = table.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
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
