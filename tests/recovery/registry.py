"""The registry of actions: what can happen between two starts, or beside a daemon that runs.

An action returns False if there was nothing for it to do, so that the life is another one's.
"""

from collections.abc import Callable

from tests.recovery.process import Driver
from tests.recovery.world import World

Action = Callable[[World, Driver], bool]

ACTIONS: dict[str, Action] = {}


def action(function: Action) -> Action:
    ACTIONS[function.__name__] = function
    return function
