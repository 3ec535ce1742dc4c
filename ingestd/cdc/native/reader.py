"""The native reader of one source table's messages: a layout and its plans."""

from dataclasses import dataclass

from ingestd.cdc.native.message_layout import Layout
from ingestd.cdc.native.module import NativeModule, NativePlan
from ingestd.cdc.native.plan import RowSpecs


@dataclass(frozen=True, slots=True)
class NativeReader:
    """A layout and its plans.

    `keys` is None if the messages have no key. `hidden` are fields of rows that are no columns."""

    layout: Layout
    values: NativePlan
    keys: NativePlan | None
    hidden: frozenset[str]


def native_reader(
    module: NativeModule,
    layout: Layout,
    specs: RowSpecs,
    hidden: frozenset[str] = frozenset(),
) -> NativeReader:
    """Return the reader of messages of a layout, whose images have these nodes."""
    keys = None if specs.key is None else module.Plan(specs.key)
    return NativeReader(layout, module.Plan(layout.root), keys, hidden)
