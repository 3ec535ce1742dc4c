"""The first module of an upkeep process: gives way to all others before it imports anything."""

import importlib
import os

_PROGRAM = "ingestd.daemon.upkeep_process"
_NICENESS = 10  # with less it starves where other programs use the machine, and ingest waits


def main() -> None:
    """Become the process, which gets about a tenth of a core that others want."""
    os.nice(_NICENESS)
    importlib.import_module(_PROGRAM).main()


if __name__ == "__main__":
    main()
