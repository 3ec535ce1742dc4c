"""What reads the messages of one source table natively: a layout, and the plans made of it."""

from dataclasses import dataclass

from ingestd.cdc.native.message_layout import Layout
from ingestd.cdc.native.module import NativeModule, NativePlan
from ingestd.cdc.native.plan import RowSpecs


@dataclass(frozen=True, slots=True)
class NativeReader:
    """`keys` is None when the messages have no key, `hidden` are fields of rows but no columns."""

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
    """The reader of messages of one layout, whose rows are of these nodes."""
    keys = None if specs.key is None else module.Plan(specs.key)
    return NativeReader(layout, module.Plan(layout.root), keys, hidden)
