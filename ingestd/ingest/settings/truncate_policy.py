"""Whether a table applies truncates of its source, and what happens to ambiguous truncates."""

from dataclasses import dataclass, replace
from typing import Literal

OnTruncate = Literal["apply", "ignore"]
AmbiguousTruncate = Literal["fail", "dead-letter", "ignore"]


@dataclass(frozen=True, slots=True)
class TruncatePolicy:
    """The policy for truncates; a field that is None is not set.

    `mode` sets whether the table is truncated (the default) or keeps its rows. `on_refused` sets
    what happens to a truncate whose order relative to the rows is unknown: it becomes a dead letter
    (the default), it is ignored, or the pipeline stops.
    """

    mode: OnTruncate | None = None
    on_refused: AmbiguousTruncate | None = None

    def over(self, defaults: "TruncatePolicy") -> "TruncatePolicy":
        """Return this policy, with unset fields taken from `defaults`."""
        return replace(
            self,
            mode=self.mode or defaults.mode,
            on_refused=self.on_refused or defaults.on_refused,
        )

    @property
    def applies(self) -> bool:
        """Whether the table is truncated when its source is truncated."""
        return self.mode in (None, "apply")

    @property
    def fails(self) -> bool:
        """Whether an ambiguous truncate stops the pipeline."""
        return self.on_refused == "fail"
