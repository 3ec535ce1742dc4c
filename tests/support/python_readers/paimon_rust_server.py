"""Answers read requests with paimon-rust; runs in an environment of its own, one request a line.

Requests and replies are those of ``pypaimon_server.py``.
"""

import json
import sys
import traceback
from typing import Any

import pyarrow as pa
from pypaimon_rust.datafusion import PaimonCatalog  # type: ignore[import-not-found]  # another environment


def read(request: dict[str, Any]) -> dict[str, Any]:
    catalog = PaimonCatalog({"warehouse": request["warehouse"]})
    builder = catalog.get_table(request["table"]).new_read_builder()
    batches = builder.new_read().read(builder.new_scan().plan().splits())
    rows = pa.Table.from_batches(batches) if batches else pa.table({})
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
