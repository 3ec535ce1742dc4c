"""How an maintenance process gives way to ingest, unless it does what ingest is about to wait for.

Imports next to nothing, so that a process can give way before it imports anything else. Priority
that was given up is not to be had back without privileges.
"""

import os
from collections.abc import Sequence

NICENESS = 10  # with more it starves where other programs use the machine
_URGENT = "urgent"


def arguments(*, urgent: bool) -> list[str]:
    """The arguments of a process whose first job is urgent, or is not."""
    return [_URGENT] if urgent else []


def gives_way(given: Sequence[str]) -> bool:
    """Whether a process with these arguments gives way from the start."""
    return _URGENT not in given


def give_way() -> None:
    """Get about a tenth of a core that others want, from now on."""
    os.nice(NICENESS)
