"""All actions, in a fixed order."""

from tests.recovery import broker_actions, setting_actions, table_actions
from tests.recovery.broker_actions import new_topic
from tests.recovery.registry import ACTIONS

__all__ = ["ACTIONS", "broker_actions", "new_topic", "setting_actions", "table_actions"]
