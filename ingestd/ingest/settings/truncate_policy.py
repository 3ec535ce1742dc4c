"""What a table does when its source was emptied, and where that cannot be put among its rows."""

from dataclasses import dataclass, replace
from typing import Literal

OnTruncate = Literal["apply", "ignore"]
AmbiguousTruncate = Literal["fail", "dead-letter", "ignore"]


@dataclass(frozen=True, slots=True)
class TruncatePolicy:
    """What becomes of truncates; None: not said.

    `mode` says whether the table is emptied (the default) or keeps its rows. `on_refused` is for
    truncates of which no one can tell which rows came before them: the truncate becomes a dead
    letter (the default), or is left out, and no row goes; or the pipeline stops.
    """

    mode: OnTruncate | None = None
    on_refused: AmbiguousTruncate | None = None

    def over(self, defaults: "TruncatePolicy") -> "TruncatePolicy":
        """This policy, with the defaults where it is silent."""
        return replace(
            self,
            mode=self.mode or defaults.mode,
            on_refused=self.on_refused or defaults.on_refused,
        )

    @property
    def applies(self) -> bool:
        """Whether the table is emptied when its source was."""
        return self.mode in (None, "apply")

    @property
    def fails(self) -> bool:
        """Whether a truncate that cannot be put in order stops the pipeline."""
        return self.on_refused == "fail"
