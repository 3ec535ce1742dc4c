"""How a table follows a truncate of its source, and what happens to ambiguous truncates."""

from dataclasses import dataclass, replace
from typing import Literal

OnTruncate = Literal["apply", "ignore"]
AmbiguousTruncate = Literal["fail", "dead-letter", "ignore"]


@dataclass(frozen=True, slots=True)
class TruncatePolicy:
    """How truncates are handled; None: not set.

    `mode` sets whether the table is emptied (the default) or keeps its rows. `on_refused` is for
    truncates that cannot be ordered among the rows: the truncate becomes a dead letter (the
    default), or is ignored, and no row is deleted; or the pipeline stops.
    """

    mode: OnTruncate | None = None
    on_refused: AmbiguousTruncate | None = None

    def over(self, defaults: "TruncatePolicy") -> "TruncatePolicy":
        """Return this policy, with the defaults for unset fields."""
        return replace(
            self,
            mode=self.mode or defaults.mode,
            on_refused=self.on_refused or defaults.on_refused,
        )

    @property
    def applies(self) -> bool:
        """Whether the table is emptied when its source is truncated."""
        return self.mode in (None, "apply")

    @property
    def fails(self) -> bool:
        """Whether an ambiguous truncate stops the pipeline."""
        return self.on_refused == "fail"
