"""Memory of batches that are wide: thousands of columns, thousands of partitions.

Measured as the growth of a process of its own. With INGESTD_LONG=1: 5,000 columns and 10,000
partitions.
"""

import os
import subprocess
import sys

MEGABYTE = 1 << 20
LONG = "INGESTD_LONG" in os.environ
COLUMNS = 5_000 if LONG else 2_500
PARTITIONS = 10_000 if LONG else 1_500

SCRIPT = """
import json, re, sys
from pathlib import Path
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from tests.support.ingest_rig import Rig

def most():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10

columns, partitions = map(int, sys.argv[1:])
settings = TableSettings(
    ("p", "id"), ("p",), {"bucket": "1"}, {}, evolution=EvolutionPolicy(max_columns=columns + 9)
)
rig = Rig(data_format="json", settings={"orders": settings})
wide = {f"c{n}": n for n in range(columns)}
rig.produce(*(
    json.dumps({"id": n, "p": f"p{n % partitions}", **wide}).encode()
    for n in range(max(10, partitions))
))
before = most()
files = len(rig.run().messages["lake.orders"])
print(json.dumps([most() - before, files, len(rig.tables["lake.orders"].schema.fields)]))
"""


def growth(columns: int, partitions: int) -> int:
    """Bytes that a batch took at the most beyond what was there before."""
    command = [sys.executable, "-c", SCRIPT, str(columns), str(partitions)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    grown, files, fields = map(int, done.stdout.strip("[]\n").split(","))
    assert (files, fields) == (partitions, columns + 2)
    return grown


def test_a_batch_of_thousands_of_partitions_takes_kilobytes_for_each() -> None:
    assert growth(1, PARTITIONS) < 40 * MEGABYTE + PARTITIONS * 16 * 1024


def test_a_table_of_thousands_of_columns_takes_tens_of_kilobytes_for_each() -> None:
    assert growth(COLUMNS, 1) < 40 * MEGABYTE + COLUMNS * 32 * 1024
