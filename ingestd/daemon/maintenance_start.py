"""Entry point of a maintenance process: lower its priority before it imports anything else.

A process whose first job is urgent keeps its priority, because ingest is about to wait for it.
Priority that was lowered cannot be raised again without privileges.
"""

import importlib
import os
import sys
from collections.abc import Sequence

NICENESS = 10  # with a higher value the process starves where other programs use the machine
_PROGRAM = "ingestd.daemon.maintenance_process"
_URGENT = "urgent"


def arguments(*, urgent: bool) -> list[str]:
    """Return the command-line arguments with which a maintenance process is started.

    If its first job is `urgent`, the process does not lower its priority.
    """
    return [_URGENT] if urgent else []


def is_low_priority(given: Sequence[str]) -> bool:
    """Return whether a process with these arguments lowers its priority at its start."""
    return _URGENT not in given


def lower_priority() -> None:
    """Lower the priority of this process, to about a tenth of the CPU time of a contended core."""
    os.nice(NICENESS)


def main() -> None:
    """Run the maintenance process, with the priority that its arguments state."""
    low_priority = is_low_priority(sys.argv[1:])
    if low_priority:
        lower_priority()
    importlib.import_module(_PROGRAM).main(low_priority=low_priority)


if __name__ == "__main__":
    main()
