"""The loop of these programs: read requests from stdin, one a line, and reply to each."""

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pyarrow as pa


def serve(read: Callable[[dict[str, Any]], pa.Table]) -> None:
    """Write the rows of each request to its file `out` as an Arrow stream, until stdin ends.

    Replies with {"rows": n}, or with {"error": text} for whatever the reader raises. What the
    reader prints goes to stderr.
    """
    replies, sys.stdout = sys.stdout, sys.stderr
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        try:
            reply = _reply(json.loads(line), read)
        except BaseException:  # noqa: BLE001 - whatever broke is the reply
            reply = {"error": traceback.format_exc()}
        print(json.dumps(reply), file=replies, flush=True)


def _reply(request: dict[str, Any], read: Callable[[dict[str, Any]], pa.Table]) -> dict[str, Any]:
    rows = read(request)
    with pa.OSFile(request["out"], "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return {"rows": rows.num_rows}
