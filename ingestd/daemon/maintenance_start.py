"""The first module of an maintenance process: gives way to all others before it imports anything.

Unless ingest is about to wait for what the process is started for.
"""

import importlib
import sys

from ingestd.daemon.niceness import give_way, gives_way

_PROGRAM = "ingestd.daemon.maintenance_process"


def main() -> None:
    """Become the process."""
    gentle = gives_way(sys.argv[1:])
    if gentle:
        give_way()
    importlib.import_module(_PROGRAM).main(gives_way=gentle)


if __name__ == "__main__":
    main()
