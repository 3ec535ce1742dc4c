"""Reads a table with pypaimon for each line of its input and prints one line of JSON each time.

python pypaimon_reader.py WAREHOUSE
"""

import json
import sys
import time

import pyarrow.compute as pc
from pypaimon import CatalogFactory


def main() -> None:
    table = CatalogFactory.create({"warehouse": sys.argv[1]}).get_table("db.t")
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        builder = table.new_read_builder()
        rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        found = {"rows": rows.num_rows, "sum": pc.sum(rows.column("n")).as_py()}
        times = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps({**found, **times}), flush=True)


if __name__ == "__main__":
    main()
